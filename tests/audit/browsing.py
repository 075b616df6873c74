"""Pages in Chromium, and whatever they do that a page of text does not."""

from contextlib import contextmanager


@contextmanager
def watched(browser):
    """Yield a function that opens a file at a fragment: the page, and its requests, windows, errors and dialogs."""
    contexts = []

    def opened(path, fragment="", **options):
        contexts.append(browser.new_context(**options))
        page, seen = contexts[-1].new_page(), []

        def is_own(address):
            return address.partition("#")[0] == path.as_uri()

        def answer(route):
            if is_own(route.request.url):
                route.continue_()
            else:
                seen.append(f"request {route.request.url}")
                route.abort()

        page.on("dialog", lambda dialog: (seen.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("console", lambda message: seen.append(f"console {message.text}"))
        page.on("pageerror", lambda error: seen.append(f"error {error}"))
        page.on("popup", lambda popup: seen.append(f"window {popup.url}"))
        page.on("framenavigated", lambda frame: None if is_own(frame.url) else seen.append(f"frame {frame.url}"))
        page.route("**/*", answer)
        page.goto(path.as_uri() + fragment, wait_until="load")
        return page, seen

    yield opened
    for context in contexts:
        context.close()
