"""An FTP server that knows PASV alone, or EPSV alone, with one file: enough for a client to list it.

    ftp_server.py ADDRESS PASV|EPSV
"""

import json
import os
import socket
import sys
import threading


def passive(control, address, word):
    """A listening socket, told to the client as an IPv4 address, or as a port."""
    listener = socket.create_server((address, 0))
    port = listener.getsockname()[1]
    if word == "EPSV":
        control.sendall(f"229 Entering Extended Passive Mode (|||{port}|)\r\n".encode())
        return listener
    numbers = ",".join([*address.split("."), str(port // 256), str(port % 256)])
    control.sendall(f"227 Entering Passive Mode ({numbers})\r\n".encode())
    return listener


def send_list(control, listener):
    """The listing, over the data connection that the client has made."""
    control.sendall(b"150 here it comes\r\n")
    listener.settimeout(5)
    data, _ = listener.accept()
    data.sendall(b"file\r\n")
    data.close()
    listener.close()
    control.sendall(b"226 done\r\n")


REPLIES = {"USER": "331 a password, please", "PASS": "230 welcome", "TYPE": "200 as you wish", "PWD": '257 "/"',
           "CWD": "250 there", "QUIT": "221 bye", "SYST": "215 UNIX Type: L8"}


def converse(control, address, way):
    """Serves one client."""
    listener = None
    control.sendall(b"220 lab\r\n")
    for line in control.makefile("r", encoding="ascii", newline="\r\n"):
        word = line.split()[0].upper() if line.split() else ""
        if word == way:
            listener = passive(control, address, word)
        elif word in ("NLST", "LIST") and listener:
            send_list(control, listener)
        else:
            control.sendall(f"{REPLIES.get(word, '502 not known here')}\r\n".encode())
        if word == "QUIT":
            break
    control.close()


def main():
    """Serves until killed."""
    server = socket.create_server((sys.argv[1], 21))
    os.write(sys.stdout.fileno(), (json.dumps({"event": "ready", "who": "ftp_server"}) + "\n").encode())
    while True:
        control, _ = server.accept()
        threading.Thread(target=converse, args=(control, *sys.argv[1:3]), daemon=True).start()


if __name__ == "__main__":
    main()
