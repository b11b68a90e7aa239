"""The API adapter against a server on this machine that misbehaves by script."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from email.utils import formatdate
from typing import ClassVar

import numpy as np
import pytest

from tropescope.errors import ModelError, OfflineError, SpendLimit
from tropescope.models.openai_entry import OpenAIEntry
from tropescope.models.openai_http import LONGEST_WAIT
from tropescope.models.openai_images import OpenAIImages
from tropescope.models.openai_spending import Spending
from tropescope.models.protocol import Request, TextToImage

from loopback import LoopbackAPI, Reply, as_json, error, image_bytes, link, picture

KEY = "sk-secret-0123456789"
NOW = 1_800_000_000.0


class Harness:
    """An adapter on a loopback server whose sleeps take no time but are written down."""

    made: ClassVar[list[Harness]] = []

    def __init__(self, api, *, offline=False, spent_before=0.0, resolve=None, **settings):
        self.waits: list[float] = []
        Harness.made.append(self)
        settings = {"retries": 3, "timeout_s": 5, "concurrency": 1, **settings}
        base_url = settings.pop("base_url", api.base_url if api else "https://api.example.com/v1")
        entry = OpenAIEntry(adapter="openai", id="m", base_url=base_url, **settings)
        options = {} if resolve is None else {"resolve": resolve}
        self.model = OpenAIImages(
            entry,
            offline=offline,
            spent_before=spent_before,
            sleep=self.waits.append,
            now=lambda: NOW,
            environment={"OPENAI_API_KEY": KEY},
            **options,
        )

    def outcomes(self, *prompts):
        requests = [Request(prompt, seed=i, key=str(i)) for i, prompt in enumerate(prompts)]
        return {request.prompt: outcome for request, outcome in self.model.generate(requests)}

    def until_it_stops(self, error, *prompts):
        """The outcomes that came before the adapter raised, and what it raised."""
        got = {}
        try:
            for request, outcome in self.model.generate([Request(p, seed=0) for p in prompts]):
                got[request.prompt] = outcome
        except error as problem:
            return got, problem
        raise AssertionError(f"no {error.__name__} was raised")

    def one(self):
        return self.outcomes("a")["a"]


@pytest.fixture(autouse=True)
def _close_adapters():
    yield
    while Harness.made:
        Harness.made.pop().model.close()


@pytest.fixture
def serve():
    """Start servers; all of them end with the test."""
    running = []

    def start(*script, **options):
        api = LoopbackAPI(script, **options).__enter__()
        running.append(api)
        return api

    yield start
    for api in running:
        api.__exit__()


# -- the good case ---------------------------------------------------------------------------------


def test_an_image_comes_back_with_its_original_bytes(serve):
    original = image_bytes("JPEG", level=70)
    api = serve(picture(original, revised_prompt="a better a"))
    harness = Harness(api, call={"quality": "low"}, size="256x256")
    outcome = harness.one()
    assert outcome.kind == "generated"
    assert outcome.encoded == original
    assert outcome.suffix == ".jpg"
    assert outcome.revised_prompt == "a better a"
    np.testing.assert_allclose(outcome.pixels, 70, atol=3)
    (seen,) = api.posts
    assert seen.path == "/v1/images/generations"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.body == {
        "model": "m",
        "prompt": "a",
        "n": 1,
        "size": "256x256",
        "quality": "low",
        "response_format": "b64_json",
    }


def test_seeds_are_sent_when_asked_for_and_no_key_when_there_is_none(serve):
    api = serve()
    harness = Harness(api, send_seed=True, api_key_env=None)
    list(harness.model.generate([Request("a", seed=2**40)]))
    assert api.posts[0].body["seed"] == 2**40
    assert "authorization" not in api.posts[0].headers


def test_it_is_a_text_to_image_model():
    model = Harness(None).model
    assert isinstance(model, TextToImage)
    assert model.batch_matters is False


def test_strange_prompts_arrive_unchanged(serve):
    prompts = ["😀 שלום", "\ud800 lone", 'quote " \\ \n', "<script>{{7*7}}"]
    api = serve()
    harness = Harness(api)
    assert {o.kind for o in harness.outcomes(*prompts).values()} == {"generated"}
    assert [seen.body["prompt"] for seen in api.posts] == prompts


def test_data_uris_and_line_breaks_in_base64_are_understood(serve):
    import base64

    text = base64.encodebytes(image_bytes()).decode()
    api = serve(as_json({"data": [{"b64_json": "data:image/png;base64," + text}]}))
    assert Harness(api).one().kind == "generated"


def test_half_surrogate_pairs_from_the_server_can_be_stored(serve):
    outcome = Harness(serve(picture(revised_prompt="a \ud800 b"))).one()
    assert outcome.revised_prompt.encode() == b"a ? b"
    outcome = Harness(serve(as_json({"data": [{"refusal": "no \udfff"}]}))).one()
    outcome.reason.encode()


# -- tries and waits -------------------------------------------------------------------------------


def busy(value):
    return as_json({"error": {"message": "slow down"}}, 429, Retry_After=value)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7),
        ("0.5", 0.5),
        (formatdate(NOW + 30, usegmt=True), 30),
        (formatdate(NOW - 30, usegmt=True), 0),
        ("99999", LONGEST_WAIT),
        (formatdate(NOW + 99999, usegmt=True), LONGEST_WAIT),
    ],
)
def test_retry_after_is_honoured_up_to_a_limit(serve, value, seconds):
    harness = Harness(serve(busy(value)))
    assert harness.one().kind == "generated"
    (wait,) = harness.waits
    assert seconds <= wait <= seconds * 1.1


@pytest.mark.parametrize("value", ["soon", "", "nan", "inf", "1e999"])
def test_a_senseless_retry_after_is_ignored(serve, value):
    harness = Harness(serve(busy(value)))
    assert harness.one().kind == "generated"
    assert 0.5 <= harness.waits[0] <= 1.0


PASSING_FAULTS = {
    "500": Reply(500, b"oops"),
    "502 page": Reply(502, b"<html>Bad gateway</html>", {"Content-Type": "text/html"}),
    "503": error(503, message="overloaded"),
    "408": error(408),
    "409": error(409),
    "half a body": Reply(200, picture().body[:50], missing=500),
    "hang up": Reply(hang_up=True),
    "HTML with status 200": Reply(200, b"<!DOCTYPE html><h1>Sorry</h1>"),
    "cut JSON": Reply(200, picture().body[:-5]),
    "empty body": Reply(200, b""),
    "JSON list": Reply(200, b"[1, 2]"),
    "deep JSON": Reply(200, b"[" * 100_000),
    "no data": as_json({"created": 1}),
    "empty data": as_json({"data": []}),
    "data of a wrong kind": as_json({"data": {"b64_json": 7}}),
    "not a string": as_json({"data": [{"b64_json": {"x": 1}}]}),
    "unasked compression": Reply(200, b"\x1f\x8b", {"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("name", PASSING_FAULTS)
def test_passing_faults_are_tried_again(serve, name):
    api = serve(PASSING_FAULTS[name], PASSING_FAULTS[name])
    harness = Harness(api)
    assert harness.one().kind == "generated"
    assert len(api.posts) == 3
    first, second = harness.waits
    assert 0.5 <= first <= 1.0 <= second <= 2.0


@pytest.mark.parametrize("name", PASSING_FAULTS)
def test_tries_are_bounded_and_then_it_failed(serve, name):
    api = serve(*[PASSING_FAULTS[name]] * 9)
    harness = Harness(api, retries=2)
    outcome = harness.one()
    assert outcome.kind == "failed"
    assert "asked 3 times" in outcome.reason
    assert len(api.posts) == 3


def test_the_reason_says_what_the_server_said(serve):
    api = serve(error(503, message="model   overloaded\n\x07 today" + "x" * 9999))
    outcome = Harness(api, retries=0).one()
    assert outcome.reason.startswith("HTTP 503: model overloaded today")
    assert len(outcome.reason) < 600


def test_a_slow_server_times_out(serve):
    harness = Harness(serve(Reply(delay=0.6)), timeout_s=0.15, retries=0)
    outcome = harness.one()
    assert outcome.kind == "failed"
    assert "no answer in time" in outcome.reason


def test_a_dripping_server_times_out_too(serve):
    # Each byte comes in time, the whole never does.
    harness = Harness(serve(Reply(body=b"x" * 200, drip=0.05)), timeout_s=0.3, retries=0)
    started = time.monotonic()
    assert harness.one().kind == "failed"
    assert time.monotonic() - started < 3


def test_no_server_at_all():
    harness = Harness(None, base_url="http://127.0.0.1:9/v1", price_per_image=1.0)
    outcome = harness.one()
    assert outcome.kind == "failed"
    assert "no connection" in outcome.reason
    assert harness.model.facts()["spent"] == 0


def test_a_huge_answer_is_cut_off(serve):
    api = serve(Reply(200, b" " * 3_000_000), Reply(200, b" " * 3_000_000))
    outcome = Harness(api, max_image_bytes=1000).one()
    assert outcome.kind == "failed"
    assert "max_image_bytes" in outcome.reason
    assert len(api.posts) == 1


def test_an_image_over_its_limit_is_not_a_result(serve):
    outcome = Harness(serve(picture(image_bytes() + bytes(9000))), max_image_bytes=9000).one()
    assert outcome.kind == "failed"
    assert "max_image_bytes" in outcome.reason


# -- refusals and other final answers --------------------------------------------------------------

REFUSALS = {
    "OpenAI": error(400, code="content_policy_violation", message="rejected by our safety system"),
    "gpt-image": error(
        400, code="moderation_blocked", message="blocked", type="image_generation_user_error"
    ),
    "Azure": error(
        400, code="BadRequest", message="no", inner_error={"code": "ResponsibleAIPolicyViolation"}
    ),
    "Azure filter": error(400, code="contentFilter", message="filtered"),
    "text only": error(400, message="Your request was rejected by the safety system."),
    "403 with a code": error(403, code="content_policy_violation"),
    "422": error(422, code="nsfw_detected"),
    "200 with a refusal": as_json({"data": [{"refusal": "I cannot draw that"}]}),
    "200, empty data, reason": as_json({"data": [], "reason": "prompt not allowed"}),
    "200 with finish reason": as_json({"data": [{"finish_reason": "content_filter"}]}),
    "200 with an error": as_json({"error": {"code": "content_policy_violation", "message": "no"}}),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_a_result(serve, name):
    api = serve(REFUSALS[name])
    outcome = Harness(api).one()
    assert outcome.kind == "refused"
    assert outcome.reason
    assert outcome.pixels is None
    assert len(api.posts) == 1


def test_the_reason_of_a_refusal_is_kept(serve):
    assert "safety system" in Harness(serve(REFUSALS["OpenAI"])).one().reason
    assert Harness(serve(REFUSALS["200 with a refusal"])).one().reason == "I cannot draw that"


@pytest.mark.parametrize(
    "reply",
    [
        error(400, code="invalid_value", message="size 7x7 is not supported", param="size"),
        # The word alone does not make it a refusal: it is about a parameter.
        error(400, code="unknown_parameter", message="Unknown: 'moderation'", param="moderation"),
        as_json({"detail": [{"loc": ["body", "quality"], "msg": "bad"}]}, 422),
        error(413, message="too long"),
    ],
)
def test_a_wrong_request_fails_at_once_and_is_no_refusal(serve, reply):
    api = serve(reply)
    outcome = Harness(api).one()
    assert outcome.kind == "failed"
    assert "HTTP 4" in outcome.reason
    assert len(api.posts) == 1


@pytest.mark.parametrize(
    ("reply", "says", "fix"),
    [
        (error(401, message="Incorrect API key"), "did not accept the API key", "OPENAI_API_KEY"),
        (error(403, message="blocked by our content policy team"), "API key", "OPENAI_API_KEY"),
        (Reply(403, b"<html>safety system</html>"), "API key", "OPENAI_API_KEY"),
        (error(404, code="model_not_found", message="no such model"), "no model 'm'", "base_url"),
        (error(429, code="insufficient_quota"), "stopped the account", "billing"),
        (error(400, code="billing_hard_limit_reached"), "stopped the account", "billing"),
        (error(402), "stopped the account", "billing"),
        (Reply(302, headers={"Location": "https://elsewhere/"}), "redirects", "base_url"),
    ],
)
def test_what_can_never_succeed_stops_the_run(serve, reply, says, fix):
    api = serve(reply)
    harness = Harness(api, price_per_image=1.0)
    with pytest.raises(ModelError, match=says) as caught:
        harness.outcomes("a", "b", "c")
    assert fix in caught.value.fix
    assert len(api.posts) == 1


def test_a_missing_key_is_noticed_before_anything_is_sent(serve):
    api = serve()
    harness = Harness(api, api_key_env="NOT_SET_ANYWHERE")
    with pytest.raises(ModelError, match="NOT_SET_ANYWHERE is not set"):
        harness.one()
    assert not api.seen


@pytest.mark.parametrize(
    ("text", "says"),
    [("!!!not base64!!!", "base64"), ("QUJ", "base64"), ("aGVsbG8=", "not a PNG"), ("ü", "base64")],
)
def test_what_is_no_image_is_invalid(serve, text, says):
    api = serve(as_json({"data": [{"b64_json": text, "revised_prompt": "r"}]}))
    outcome = Harness(api).one()
    assert outcome.kind == "invalid"
    assert says in outcome.reason
    assert outcome.revised_prompt == "r"


def test_a_truncated_image_is_invalid(serve):
    outcome = Harness(serve(picture(image_bytes()[:-20]))).one()
    assert outcome.kind == "invalid"
    assert "cut off" in outcome.reason


# -- response_format -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        error(400, code="unknown_parameter", message="Unknown parameter: 'response_format'."),
        error(400, message="bad", param="response_format"),
        as_json({"detail": [{"loc": ["body", "response_format"], "msg": "extra"}]}, 422),
    ],
)
def test_a_server_without_response_format_is_asked_without_it(serve, reply):
    api = serve(reply)
    harness = Harness(api, retries=0, price_per_image=1.0)
    assert {o.kind for o in harness.outcomes("a", "b").values()} == {"generated"}
    assert ["response_format" in seen.body for seen in api.posts] == [True, False, False]
    assert harness.model.facts()["spent"] == 2.0


def test_a_server_that_keeps_refusing_it_does_not_loop(serve):
    reply = error(400, message="response_format is bad")
    api = serve(*[reply] * 9)
    assert Harness(api).one().kind == "failed"
    assert len(api.posts) == 2


# -- links -----------------------------------------------------------------------------------------


def linked(serve, *replies, target=None, **settings):
    """A server that answers with a link to its own page /x, whose replies are given."""
    pages = {"/x": replies} if replies else {}
    api = serve(pages=pages)
    api._script.append(link(target or api.root + "/x"))
    return api, Harness(api, **settings)


def test_a_link_is_fetched_without_the_key(serve):
    api, harness = linked(serve, Reply(200, image_bytes("WEBP")))
    outcome = harness.one()
    assert outcome.kind == "generated"
    assert outcome.suffix == ".webp"
    (page,) = [seen for seen in api.seen if seen.method == "GET"]
    assert "authorization" not in page.headers
    assert KEY not in str(page)


def test_only_the_download_is_repeated_not_the_paid_request(serve):
    api, harness = linked(
        serve, Reply(503), Reply(200, b"x", missing=9), Reply(200, image_bytes()), price_per_image=1
    )
    assert harness.one().kind == "generated"
    assert len(api.posts) == 1
    assert len(api.seen) == 4
    assert harness.model.facts()["spent"] == 1


def test_redirects_on_this_machine_are_followed_but_not_for_ever(serve):
    hop = Reply(302, headers={"Location": "/x"})
    _, harness = linked(serve, hop, hop, Reply(200, image_bytes()))
    assert harness.one().kind == "generated"
    api, harness = linked(serve, hop)
    outcome = harness.one()
    assert outcome.kind == "failed"
    assert "redirects more than" in outcome.reason
    assert len(api.posts) == 1


PUBLIC, PRIVATE = ["93.184.216.34"], ["93.184.216.34", "10.0.0.7"]


@pytest.mark.parametrize(
    ("target", "addresses", "says"),
    [
        ("file:///etc/passwd", PUBLIC, "'file:'"),
        ("ftp://example.com/x", PUBLIC, "'ftp:'"),
        ("data:image/png;base64,AAAA", PUBLIC, "link"),
        ("http://example.com/x", PUBLIC, "not https"),
        ("https://intranet.example/x", PRIVATE, "private network"),
        ("https://169.254.169.254/latest", ["169.254.169.254"], "private network"),
        ("https://[::ffff:10.0.0.1]/x", ["::ffff:10.0.0.1"], "private network"),
        ("https://2130706433/x", ["127.0.0.1"], "private network"),
        ("https://cgnat.example/x", ["100.64.0.1"], "private network"),
        ("https://multicast.example/x", ["224.0.0.1"], "private network"),
        ("https://", PUBLIC, ""),
        ("::::", PUBLIC, ""),
    ],
)
@pytest.mark.parametrize("by_redirect", [False, True])
def test_links_that_are_not_followed(serve, target, addresses, says, by_redirect):
    if by_redirect:
        api, harness = linked(
            serve,
            Reply(302, headers={"Location": target}),
            resolve=lambda host, port: ["127.0.0.1"] if host == "127.0.0.1" else addresses,
        )
    else:
        api, harness = linked(serve, target=target, resolve=lambda host, port: addresses)
    outcome = harness.one()
    assert outcome.kind == "failed"
    assert says in outcome.reason
    assert len(api.posts) == 1


def test_a_public_api_cannot_point_to_this_machine(serve):
    from urllib.parse import urlsplit

    from tropescope.models.openai_http import LinkError, LinkFetcher

    api = serve(pages={"/x": [Reply(200, image_bytes())]})
    options = {"most_bytes": 10**6, "timeout_s": 2.0, "offline": False}
    public = LinkFetcher(urlsplit("https://api.example.com/v1"), **options)
    with pytest.raises(LinkError, match="this machine"):
        public.fetch(api.root + "/x")
    sly = LinkFetcher(
        urlsplit("https://api.example.com/v1"), resolve=lambda *_: ["127.0.0.1"], **options
    )
    with pytest.raises(LinkError, match="private network"):
        sly.fetch(f"https://images.example.com:{api.root.rpartition(':')[2]}/x")
    assert not api.seen


def test_the_connection_goes_to_the_address_that_was_checked(serve):
    """A second look-up that answers differently (DNS rebinding) changes nothing."""
    from urllib.parse import urlsplit

    from tropescope.models.openai_http import LinkFetcher

    api = serve(pages={"/x": [Reply(200, b"data")]})
    asked = []

    def resolve(host, port):
        asked.append(host)
        return ["127.0.0.1"]

    fetcher = LinkFetcher(
        urlsplit(api.base_url), most_bytes=99, timeout_s=2, offline=False, resolve=resolve
    )
    port = api.root.rpartition(":")[2]
    assert fetcher.fetch(f"http://localhost:{port}/x") == b"data"
    assert asked == ["localhost"]
    assert api.seen[0].headers["host"] == f"localhost:{port}"


def test_a_huge_link_is_cut_off(serve):
    _, harness = linked(serve, Reply(200, bytes(50_000)), max_image_bytes=10_000)
    outcome = harness.one()
    assert outcome.kind == "failed"
    assert "10,000 bytes" in outcome.reason


@pytest.mark.parametrize("status", [403, 404, 204])
def test_a_link_that_leads_nowhere_failed(serve, status):
    _, harness = linked(serve, Reply(status))
    outcome = harness.one()
    assert outcome.kind == "failed"
    assert str(status) in outcome.reason


def test_a_link_to_something_else_is_invalid(serve):
    _, harness = linked(serve, Reply(200, b"<html>expired</html>"))
    assert harness.one().kind == "invalid"


# -- offline ---------------------------------------------------------------------------------------


def test_offline_means_nothing_is_sent():
    harness = Harness(None, offline=True, resolve=lambda *_: pytest.fail("looked up a host"))
    with pytest.raises(OfflineError, match=r"api\.example\.com"):
        harness.one()
    assert harness.model.facts()["requests_sent"] == 0


def test_offline_allows_this_machine_but_no_link_away_from_it(serve):
    assert Harness(serve(), offline=True).one().kind == "generated"
    _, harness = linked(serve, target="https://cdn.example.com/x", offline=True)
    with pytest.raises(OfflineError, match=r"cdn\.example\.com"):
        harness.one()


# -- spending --------------------------------------------------------------------------------------


def until_the_cap(harness, *prompts):
    got, problem = harness.until_it_stops(SpendLimit, *prompts)
    return [outcome.kind for outcome in got.values()], problem


@pytest.mark.parametrize("concurrency", [1, 4])
def test_the_cap_stops_after_what_is_paid_for(serve, concurrency):
    api = serve()
    harness = Harness(api, price_per_image=0.1, spend_cap=0.3, concurrency=concurrency)
    got, problem = until_the_cap(harness, *"abcdefgh")
    assert got == ["generated"] * 3
    assert len(api.posts) == 3
    assert harness.model.facts()["spent"] == pytest.approx(0.3)
    assert "0.3 USD" in problem.message
    assert "spend_cap" in problem.fix


def test_a_cap_that_is_exactly_enough_does_not_stop(serve):
    harness = Harness(serve(), price_per_image=0.1, spend_cap=0.3)
    assert len(harness.outcomes("a", "b", "c")) == 3


def test_what_was_spent_before_counts(serve):
    harness = Harness(serve(), price_per_image=0.1, spend_cap=0.3, spent_before=0.1)
    harness.model.add_prior_spend(0.1)
    got, _ = until_the_cap(harness, *"abc")
    assert got == ["generated"]
    assert harness.model.facts()["spent"] == pytest.approx(0.1)


def test_retries_that_may_be_billed_count(serve):
    api = serve(Reply(500), Reply(200, b"x", missing=5))
    harness = Harness(api, price_per_image=1, spend_cap=2)
    got, _ = until_the_cap(harness, "a", "b")
    assert got == []
    assert len(api.posts) == 2


def test_retries_that_cannot_be_billed_do_not_count(serve):
    api = serve(busy("1"), busy("1"))
    harness = Harness(api, price_per_image=1, spend_cap=1)
    assert harness.one().kind == "generated"
    facts = harness.model.facts()
    assert (facts["requests_sent"], facts["spent"], facts["currency"]) == (3, 1.0, "USD")


def test_refusals_count(serve):
    harness = Harness(serve(REFUSALS["OpenAI"]), price_per_image=1, spend_cap=1)
    got, _ = until_the_cap(harness, "a", "b")
    assert got == ["refused"]


def test_room_made_by_an_unbilled_request_is_used():
    """Two at once under a cap of one: the second waits for what becomes of the first."""
    spending = Spending(price=1, cap=1, currency="USD")
    stop = threading.Event()
    assert spending.reserve(stop)
    second: list[bool] = []
    thread = threading.Thread(target=lambda: second.append(spending.reserve(stop)))
    thread.start()
    thread.join(0.1)
    assert second == []
    spending.settle(billed=False)
    thread.join(5)
    assert second == [True]
    spending.settle(billed=True)
    with pytest.raises(SpendLimit):
        spending.reserve(stop)
    assert (spending.spent, spending.requests_sent) == (1.0, 2)


def test_a_paid_link_is_still_fetched_when_the_cap_is_reached(serve):
    pages = {"/x": [Reply(503, delay=0.1), Reply(200, image_bytes(), delay=0.1)]}
    api = serve(pages=pages)
    api._by_prompt["a"] = deque([link(api.root + "/x")])
    harness = Harness(api, price_per_image=1, spend_cap=1, concurrency=2)
    got, _ = until_the_cap(harness, "a", "b")
    assert got == ["generated"]


def test_estimated_cost():
    assert Harness(None).model.estimated_cost(10) is None
    model = Harness(None, price_per_image=0.04, currency="EUR").model
    assert model.estimated_cost(10) == (pytest.approx(0.4), "EUR")


# -- concurrency -----------------------------------------------------------------------------------


def test_requests_run_at_once_but_not_more_than_allowed(serve):
    api = serve(*[Reply(200, picture().body, delay=0.1)] * 8)
    assert len(Harness(api, concurrency=4).outcomes(*"abcdefgh")) == 8
    assert api.most_at_once == 4


def test_outcomes_come_as_soon_as_they_are_there(serve):
    api = serve(by_prompt={"slow": [Reply(200, picture().body, delay=3)]})
    harness = Harness(api, concurrency=2)
    stream = harness.model.generate([Request("slow", seed=0), Request("fast", seed=0)])
    started = time.monotonic()
    assert next(stream)[0].prompt == "fast"
    assert time.monotonic() - started < 2
    stream.close()


def test_leaving_early_stops_the_rest(serve):
    api = serve()
    harness = Harness(api, concurrency=1)
    stream = harness.model.generate([Request(str(i), seed=0) for i in range(500)])
    next(stream)
    stream.close()
    for thread in threading.enumerate():
        if thread.name == "tropescope-api":
            thread.join(5)
    assert len(api.posts) < 500


def test_a_fatal_answer_lets_paid_ones_come_in(serve):
    api = serve(by_prompt={"paid": [Reply(200, picture().body, delay=0.3)], "bad": [error(401)]})
    harness = Harness(api, concurrency=2)
    got, problem = harness.until_it_stops(ModelError, "paid", "bad")
    assert list(got) == ["paid"]
    assert "API key" in problem.message


def test_an_adapter_can_be_closed_and_used_again(serve):
    harness = Harness(serve())
    harness.one()
    harness.model.close()
    harness.model.close()
    assert harness.one().kind == "generated"
    assert list(harness.model.generate([])) == []


# -- identity, prompts, secrecy --------------------------------------------------------------------


def test_identity_is_what_decides_an_image():
    base = {"call": {"quality": "hd"}, "size": "512x512"}
    model = Harness(None, **base).model
    assert model.identity() == {
        "adapter": "openai",
        "host": "api.example.com",
        "path": "/v1",
        "id": "m",
        "size": "512x512",
        "call": {"quality": "hd"},
        "send_seed": False,
    }
    same = {"api_key_env": None, "price_per_image": 9.0, "concurrency": 2, "retries": 1}
    assert Harness(None, **base, **same).model.identity() == model.identity()
    for change in ({"size": "256x256"}, {"call": {}}, {"send_seed": True}):
        assert Harness(None, **{**base, **change}).model.identity() != model.identity()


def test_prompts_are_checked():
    model = OpenAIImages(
        OpenAIEntry(adapter="openai", id="dall-e-3", base_url="https://api.openai.com/v1")
    )
    problems = model.check_prompts(["fine", "  ", "x" * 4001])
    assert [(p.level, p.prompt[:3]) for p in problems] == [("error", "  "), ("error", "xxx")]
    assert "4,000" in problems[1].message
    assert Harness(None).model.check_prompts(["x" * 4001]) == []


def test_the_key_is_nowhere(serve, caplog):
    """Not in a log at any level, an outcome, an error, a representation, a fact."""
    caplog.set_level(logging.DEBUG)
    echo = f"bad key {KEY}"
    api = serve(
        error(500, message=echo),
        error(400, message=echo),
        as_json({"data": [{"refusal": echo, "revised_prompt": echo}]}),
        Reply(200, b"x" * 4990 + KEY.encode()),
        picture(revised_prompt=echo),
        error(401, message=echo),
    )
    harness = Harness(api)
    got, problem = harness.until_it_stops(ModelError, *"abcde")
    texts = [f"{o.kind} {o.reason} {o.revised_prompt}" for o in got.values()]
    assert len(texts) == 3
    assert any("[OPENAI_API_KEY]" in text for text in texts)
    model = harness.model
    shown = [*texts, str(problem), repr(problem), repr(model), str(model.facts())]
    shown += [str(model.identity()), caplog.text, repr(vars(model))]
    assert not any(KEY in text for text in shown)
    assert all(seen.headers["authorization"] == f"Bearer {KEY}" for seen in api.posts)
