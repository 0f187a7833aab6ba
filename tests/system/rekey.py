"""A TLS client that asks for new keys again and again, which Python's own cannot: OpenSSL on a memory BIO."""
import ctypes
import socket

_ssl, _crypto = ctypes.CDLL("libssl.so.3"), ctypes.CDLL("libcrypto.so.3")
_P, _INT = ctypes.c_void_p, ctypes.c_int
for _library, _name, _result, _arguments in [
        (_ssl, "TLS_client_method", _P, []), (_ssl, "SSL_CTX_new", _P, [_P]), (_ssl, "SSL_CTX_free", None, [_P]),
        (_ssl, "SSL_new", _P, [_P]), (_ssl, "SSL_free", None, [_P]), (_ssl, "SSL_set_bio", None, [_P, _P, _P]),
        (_ssl, "SSL_connect", _INT, [_P]), (_ssl, "SSL_do_handshake", _INT, [_P]), (_ssl, "SSL_key_update", _INT, [_P, _INT]),
        (_ssl, "SSL_write", _INT, [_P, ctypes.c_char_p, _INT]), (_crypto, "BIO_new", _P, [_P]), (_crypto, "BIO_s_mem", _P, []),
        (_crypto, "BIO_read", _INT, [_P, ctypes.c_char_p, _INT]), (_crypto, "BIO_write", _INT, [_P, ctypes.c_char_p, _INT])]:
    _function = getattr(_library, _name)
    _function.restype, _function.argtypes = _result, _arguments


class Rekey:
    """One connection; `socket` is what its bytes go through."""

    def __init__(self, address, seconds):
        self.socket = socket.create_connection(address, seconds)
        self.context = _ssl.SSL_CTX_new(_ssl.TLS_client_method())
        self.tls = _ssl.SSL_new(self.context)
        self.come, self.go = (_crypto.BIO_new(_crypto.BIO_s_mem()) for _ in range(2))
        _ssl.SSL_set_bio(self.tls, self.come, self.go)
        while _ssl.SSL_connect(self.tls) != 1:
            self.socket.sendall(self._made())
            came = self.socket.recv(65536)
            assert came, "the server ended the handshake"
            _crypto.BIO_write(self.come, came, len(came))
        self.socket.sendall(self._made())

    def _made(self):
        out, room = b"", ctypes.create_string_buffer(1 << 20)
        while (n := _crypto.BIO_read(self.go, room, len(room))) > 0:
            out += room.raw[:n]
        return out

    def records(self, data):
        """The bytes that say this."""
        assert _ssl.SSL_write(self.tls, data, len(data)) == len(data)
        return self._made()

    def updates(self, count):
        """The bytes of so many key updates."""
        for _ in range(count):
            assert _ssl.SSL_key_update(self.tls, 0) == 1 and _ssl.SSL_do_handshake(self.tls) == 1
        return self._made()

    def close(self):
        self.socket.close()
        _ssl.SSL_free(self.tls)
        _ssl.SSL_CTX_free(self.context)
