"""An OpenID Connect provider for tests: whoever it is told to let in is let in at once."""

import json
import threading
import time
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "gistree", "not so secret"


class Provider:
    """The discovery document, the authorization code flow, and the keys."""

    def __init__(self) -> None:
        self.person = {"sub": "1", "name": "One"}
        self._key = RSAKey.generate_key(2048, {"kid": "1", "use": "sig", "alg": "RS256"})
        self._codes: dict[str, dict[str, Any]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def secrets(self, site: str) -> str:
        """Streamlit's settings for this provider."""
        return (
            f'[auth]\nredirect_uri = "{site}/oauth2callback"\ncookie_secret = "{"x" * 40}"\n'
            f'client_id = "{CLIENT}"\nclient_secret = "{SECRET}"\n'
            f'server_metadata_url = "{self.url}/.well-known/openid-configuration"\n'
        )

    def _configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def _token(self, code: str) -> dict[str, Any]:
        asked = self._codes.pop(code)
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 600,
            "nonce": asked.get("nonce", ""),
            **asked["person"],
        }
        signed = jwt.encode({"alg": "RS256", "kid": "1"}, claims, self._key)
        return {"access_token": "x", "token_type": "Bearer", "expires_in": 600, "id_token": signed}

    def _handler(provider) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                if url.path == "/.well-known/openid-configuration":
                    self._say(provider._configuration())
                elif url.path == "/keys":
                    self._say({"keys": [provider._key.as_dict(private=False)]})
                else:
                    asked = {name: values[0] for name, values in parse_qs(url.query).items()}
                    code = f"code-{len(provider._codes)}-{time.time_ns()}"
                    provider._codes[code] = asked | {"person": dict(provider.person)}
                    back = urlencode({"code": code, "state": asked["state"]})
                    self.send_response(302)
                    self.send_header("Location", f"{asked['redirect_uri']}?{back}")
                    self.end_headers()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                given = {name: values[0] for name, values in parse_qs(body).items()}
                known = f"{CLIENT}:{SECRET}"
                header = self.headers.get("Authorization", "")
                by_header = header.startswith("Basic ") and b64decode(header[6:]).decode()
                by_body = f"{given.get('client_id')}:{given.get('client_secret')}"
                if known not in (by_header.replace("+", " ") if by_header else "", by_body):
                    self._say({"error": "invalid_client"}, status=401)
                    return
                self._say(provider._token(given["code"]))

            def _say(self, value: Any, *, status: int = 200) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler
