"""A real Chromium without a screen, and the page in it."""
import contextlib
import http.client
import json
import os
import ssl

from drover import LIMIT, Failed, free_port, wait_until
from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException, WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By


@contextlib.contextmanager
def chromium(instance, width=1280, height=900):
    """A browser with a profile of its own in the instance's folder. It takes the server's certificate, which is its own CA's."""
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--ignore-certificate-errors",
                     "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-extensions",
                     f"--user-data-dir={instance.base}/chromium", f"--window-size={width},{height}", "--lang=en-US"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver", env=instance.env))
    try:
        driver.set_script_timeout(LIMIT)
        driver.set_page_load_timeout(LIMIT)
        yield driver
    finally:
        driver.quit()


class Page:
    """The page of an instance in a browser."""

    def __init__(self, instance, driver):
        self.instance, self.driver = instance, driver
        self.url = f"https://127.0.0.1:{instance.port}/"

    def open(self, hash_=""):
        """Once more when an interface of this machine came or went meanwhile: the browser gives up what it is loading then."""
        for _ in range(10):
            self.said()
            self.driver.get(self.url + hash_)
            if not any("ERR_NETWORK_CHANGED" in text for text in self.said()):
                break

    def go(self, hash_):
        self.driver.execute_script("location.hash = arguments[0]", hash_)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def there(self, selector, seconds=LIMIT):
        """The first element of a selector that is seen, once there is one."""

        def seen():
            with contextlib.suppress(StaleElementReferenceException):
                return next((e for e in self.all(selector) if e.is_displayed()), None)
            return None

        seen.__doc__ = f"{selector} is shown"
        return self.until(seen, seconds)

    def until(self, what, seconds=LIMIT):
        """wait_until, past elements that are replaced while they are looked at. A failure tells what is shown."""

        def calm():
            with contextlib.suppress(StaleElementReferenceException, NoSuchElementException):
                return what()
            return None

        calm.__doc__ = what.__doc__
        try:
            return wait_until(calm, seconds)
        except Failed as e:
            raise Failed(f"{e}\n{self.driver.current_url}\n{self.text()}\n{self.said()}") from None

    def click(self, selector):
        def clicked():
            try:
                self.there(selector).click()
                return True
            except (StaleElementReferenceException, WebDriverException):
                return False

        clicked.__doc__ = f"{selector} can be clicked"
        wait_until(clicked)

    def fill(self, selector, text):
        e = self.there(selector)
        e.clear()
        e.send_keys(text)

    def text(self, selector="body"):
        with contextlib.suppress(StaleElementReferenceException, NoSuchElementException):
            return self.driver.find_element(By.CSS_SELECTOR, selector).text
        return ""

    def shows(self, text, selector="body", seconds=LIMIT):
        """Waits until the text is in what is seen."""

        def seen():
            return text in self.text(selector)

        seen.__doc__ = f"{selector} shows {text!r}"
        self.until(seen, seconds)

    def sign_in(self, token):
        self.open()
        self.fill("#token", token)
        self.click("form button[type=submit]")
        self.there("#sign-out")

    def said(self):
        """What the browser has to complain about."""
        return [m["message"] for m in self.driver.get_log("browser")]

    def script(self, text, *args):
        return self.driver.execute_script(text, *args)

    def fetch(self, method, path, headers=None, body=None):
        """A call of the page's own origin with its cookie, as a script there would make it: (status, text)."""
        return self.driver.execute_async_script(
            "const [method, path, headers, body, done] = arguments;"
            "fetch(path, {method, headers, body: body === null ? undefined : body})"
            ".then(async r => done([r.status, await r.text()]), e => done([0, String(e)]));", method, path, headers or {}, body)

    def scheme(self, name):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})


def with_page(instance, *settings, agent=True):
    """Starts a server that serves the page, and an agent."""
    instance.port = free_port()
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    instance.write(f"{instance.dir}/droverd.yaml", "\n".join(["page: yes", *settings, ""]))
    if agent:
        instance.up("--api-listen", f"127.0.0.1:{instance.port}")
    else:
        instance.server("--api-listen", f"127.0.0.1:{instance.port}")
    return instance


def https(instance, method, path, headers=None, body=None, source="127.0.0.1"):
    """(status, headers, body) of a call over TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    c = http.client.HTTPSConnection("127.0.0.1", instance.port, timeout=LIMIT, context=context, source_address=(source, 0))
    try:
        c.request(method, path, json.dumps(body) if isinstance(body, dict) else body, headers or {})
        answer = c.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        c.close()
