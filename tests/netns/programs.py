"""The unmodified programs that the tests drive, one line each."""

from dataclasses import dataclass

_CREATE_CONNECTION = "import socket; s = socket.create_connection(('{}', 7)); s.send(b'x'); s.recv(1)"
_URLLIB = "import urllib.request; print(urllib.request.urlopen('http://{}/').read())"
_PERL = """
use IO::Socket::IP;
my $socket = IO::Socket::IP->new(PeerHost => '{}', PeerService => 7, Type => SOCK_STREAM) or die "$@";
$socket->syswrite("x");
$socket->sysread(my $reply, 1);
"""
_BASH = r"exec 3<>/dev/tcp/{}/80; printf 'GET / HTTP/1.0\r\n\r\n' >&3; cat <&3"


@dataclass(frozen=True)
class Program:
    """A command line, {} for the name to connect to; `status` is how it ends in the healthy lab."""

    name: str
    words: tuple
    status: int = 0
    stdin: bytes = b""  # None: kept open, and silent

    def command(self, host):
        """The command line for a host."""
        return [word.replace("{}", host.name) for word in self.words]


PROGRAMS = (
    Program("wget", ("wget", "-q", "-t1", "-O-", "http://{}/")),
    # The fake server has no keys: 255 is as far as it gets.
    Program("ssh", ("ssh", "-F/dev/null", "-oBatchMode=yes", "-oStrictHostKeyChecking=no",
                    "-oUserKnownHostsFile=/dev/null", "lab@{}", "true"), status=255),
    Program("git", ("git", "ls-remote", "git://{}/repository")),
    Program("telnet", ("telnet", "{}"), stdin=None),  # ends when the server hangs up
    Program("msmtp", ("msmtp", "--host={}", "--serverinfo")),
    Program("w3m", ("w3m", "-dump", "http://{}/")),
    Program("python-create-connection", ("/usr/bin/python3", "-c", _CREATE_CONNECTION)),
    Program("python-urllib", ("/usr/bin/python3", "-c", _URLLIB)),
    Program("perl-io-socket-ip", ("perl", "-e", _PERL)),
    Program("ldapsearch", ("ldapsearch", "-x", "-H", "ldap://{}", "-b", "dc=test", "-s", "base")),
    Program("mosquitto-pub", ("mosquitto_pub", "-h", "{}", "-t", "topic", "-m", "message")),
    Program("bash-dev-tcp", ("bash", "-c", _BASH)),
    Program("openssl-s-client", ("openssl", "s_client", "-connect", "{}:443")),
    Program("busybox-wget", ("busybox", "wget", "-q", "-O-", "http://{}/")),
)


def find(name):
    """The program of this name."""
    return next(program for program in PROGRAMS if program.name == name)
