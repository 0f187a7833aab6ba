"""Messages of SSSRMAP as a client makes them: an envelope, signed over the body's text; and responses, whose signature is checked."""
import base64
import hashlib
import hmac
import http.client
import ssl
import xml.etree.ElementTree as ET
from xml.sax.saxutils import escape, quoteattr


def signature(body, key, digest="sha256", name=None):
    first = hashlib.new(digest, body.encode()).digest()
    second = hmac.new(key.encode(), first, digest).digest()
    named = f" name={quoteattr(name)}" if name else ""
    return (f"<Signature><DigestValue>{base64.b64encode(first).decode()}</DigestValue><SignatureValue>{base64.b64encode(second).decode()}"
            f"</SignatureValue><SecurityToken type=\"Symmetric\"{named}></SecurityToken></Signature>")


def request(action, obj, actor, more="", **options):
    given = "".join(f"<Option name={quoteattr(k)}>{escape(str(v))}</Option>" for k, v in options.items())
    return f"<Body><Request action={quoteattr(action)} actor={quoteattr(actor)} id=\"r1\"><Object>{obj}</Object>{given}{more}</Request></Body>"


def job(**fields):
    return "<Data><Job>" + "".join(f"<{k}>{escape(str(v))}</{k}>" for k, v in fields.items()) + "</Job></Data>"


def envelope(body, sign=""):
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<Envelope>{body}{sign}</Envelope>'


class Client:
    """Sends messages to a port, in chunks as the protocol has it."""

    def __init__(self, port, key=None, digest="sha256", name=None, token=None):
        self.headers = None
        self.port, self.key, self.digest, self.name, self.token = port, key, digest, name, token

    def framing(self, text, chunked):
        """Content-Length and Transfer-Encoding of the answer, and its text."""
        said = self.post(text, chunked)[1]
        return self.headers["Content-Length"], self.headers["Transfer-Encoding"], said

    def post(self, text, chunked=True, content_type='text/xml; charset="utf-8"'):
        """Status and text of the answer."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        c = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=90)
        raw = text.encode() if isinstance(text, str) else text
        c.request("POST", "/SSSRMAP3", iter([raw]) if chunked else raw, {"Content-Type": content_type}, encode_chunked=chunked)
        answer = c.getresponse()
        said = answer.read().decode()
        self.headers = answer.headers
        c.close()
        return answer.status, said

    def sign(self, body):
        if self.token:
            return f'<Signature><SecurityToken type="Cleartext">{self.token}</SecurityToken></Signature>'
        return signature(body, self.key, self.digest, self.name) if self.key else ""

    def __call__(self, action, obj, actor="root", more="", code="000", **options):
        """The elements of the response's Data, each as a dict."""
        body = request(action, obj, actor, more, **options)
        status, said = self.post(envelope(body, self.sign(body)))
        assert status == 200, said
        got, data = self.read(said)
        assert got[0] == code, (got, said)
        return data if code == "000" else got[1]

    def code(self, action, obj, actor="root", **options):
        """The status code alone."""
        body = request(action, obj, actor, **options)
        return self.read(self.post(envelope(body, self.sign(body)))[1])[0][0]

    def read(self, said):
        root = ET.fromstring(said)
        response = root.find("Body/Response")
        code = response.find("Status/Code").text
        assert (response.find("Status/Value").text == "Success") == (code == "000")
        if self.key and root.find("Signature") is not None:
            body = said[said.index("<Body"):said.index("</Body>") + 7]
            assert signature(body, self.key, self.digest, self.name) in said
        data = [{field.tag: field.text for field in one} for one in response.findall("Data/*")]
        if code == "000":
            assert int(response.find("Count").text) == len(data) and response.get("id") == "r1"
        return (code, response.findtext("Status/Message")), data
