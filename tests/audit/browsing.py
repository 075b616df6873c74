"""Pages in Chromium, and whatever they do that a page of text does not."""

from contextlib import contextmanager


@contextmanager
def watched(browser):
    """Yield a function that opens a file at a fragment: the page, and its requests, windows, errors and dialogs."""
    contexts = []

    def opened(path, fragment="", **options):
        contexts.append(browser.new_context(**options))
        page, events = contexts[-1].new_page(), []

        def is_own(address):
            return address.partition("#")[0] == path.as_uri()

        def answer(route):
            if is_own(route.request.url):
                route.continue_()
            else:
                events.append(f"request {route.request.url}")
                route.abort()

        page.on("dialog", lambda dialog: (events.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("console", lambda message: events.append(f"console {message.text}"))
        page.on("pageerror", lambda error: events.append(f"error {error}"))
        page.on("popup", lambda popup: events.append(f"window {popup.url}"))
        page.on("framenavigated", lambda frame: None if is_own(frame.url) else events.append(f"frame {frame.url}"))
        page.route("**/*", answer)
        page.goto(path.as_uri() + fragment, wait_until="load")
        return page, events

    yield opened
    for context in contexts:
        context.close()
