// One exchange with a server by one of Node's clients, as its manual shows it.
//
//   node clients.js CLIENT NAME
//
// Prints whether the server said what it says, and after how many ms; exit status 0 if so.

'use strict';

const clients = {
  async undici(name) {
    const { request, getGlobalDispatcher } = require('undici');
    const { body } = await request(`http://${name}/`);
    const text = await body.text();
    await getGlobalDispatcher().close();
    return text.trim() === 'hello';
  },

  async ws(name) {
    const WebSocket = require('ws');
    const socket = new WebSocket(`ws://${name}:8080/`);
    return new Promise((resolve, reject) => {
      socket.on('error', reject);
      socket.on('open', () => socket.send('token'));
      socket.on('message', (data) => {
        socket.terminate();
        resolve(data.toString() === 'token');
      });
    });
  },

  async pg(name) {
    const { Client } = require('pg');
    const client = new Client({ host: name, user: 'lab', database: 'lab' });
    await client.connect();
    const result = await client.query('select 1');
    await client.end();
    return result.command === 'SELECT';
  },

  async mysql2(name) {
    const connection = await require('mysql2/promise').createConnection({ host: name, user: 'lab' });
    const [result] = await connection.query('do 1');
    await connection.end();
    return result.affectedRows === 0;
  },

  async redis(name) {
    const client = require('redis').createClient({ url: `redis://${name}` });
    client.on('error', (error) => { throw error; });
    await client.connect();
    const answer = await client.ping();
    await client.quit();
    return answer === 'PONG';
  },
};

const [client, name] = process.argv.slice(2);
require(client === 'mysql2' ? 'mysql2/promise' : client);  // loading it takes longer than the network
const began = performance.now();
clients[client](name).then((right) => {
  console.log(right ? 'as expected' : 'something else', Math.round(performance.now() - began));
  process.exitCode = right ? 0 : 1;
}, (error) => {
  console.log(error);
  process.exitCode = 2;
});
