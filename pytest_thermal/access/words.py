"""What gateways, engines and web servers say, by meaning: patterns over `reading.error_words`, all in lower case."""

from __future__ import annotations

import re

from pytest_thermal.access.reading import error_words
from pytest_thermal.model.said import say
from pytest_thermal.transport import Exchange, retry_after_seconds


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


PLAIN_TO_TLS = _any(r"plain http.{0,20}(to|on|at) (an )?(https|ssl)", r"http request.{0,20}to an https server")
FIREWALL = _any(
    r"error code: 1\d\d\d", r"rbac: access denied", r"request blocked", r"web application firewall|\bwaf\b"
)  # fmt: skip
MONEY = _any(
    r"insufficient.?(user.?)?(quota|balance|credit|fund)",
    r"exceeded your current quota",
    r"\b(billing|payment|arrears?|arrearage|overdue|balance)\b",
    r"budget.{0,20}exceeded|exceeded.{0,20}budget",
    r"quota.?(failed|not.?enough|exhausted)",
    r"余额|欠费|预扣|额度.{0,8}(不足|用尽|耗尽|用完)",
)
MODEL_DENIED = _any(
    r"not allowed to (access|use)",
    r"(no|not have) (access|permission).{0,20}model",
    r"not (authorized|permitted).{0,30}model",
    r"model_access_denied|model\.accessdenied|access to model denied|unpurchased",
    r"not activated|modelnotopen",
    r"无权.{0,8}(使用|访问|调用).{0,8}模型|未开通",
)
UPSTREAM = _any(
    r"litellm\.\w*(error|exception)",
    r"\bupstream\b",
    r"openaiexception",
    r"provider.{0,30}(key|auth)",
    r"channel.{0,20}(key|auth)",
    r"上游|渠道.{0,8}(密钥|key)",
)
MODEL_UNKNOWN = _any(
    r"model_not_found|invalid_model|notfounderror|invalidendpointormodel",
    r"model.{0,80}(not exist|not found|not supported|unknown|not be found|\bunavailable\b|not available)",
    r"(unknown|unsupported|no such|invalid) model|not a valid model|model name passed in",
    r"deployment.{0,40}not exist|pinned to",
    r"no.{0,12}(deployments?|channel|worker)s?.{0,20}available|no available (channel|worker|deployment)",
    r"模型.{0,20}(不存在|未找到|不支持|已下线)|无可用渠道",
)
_KEY = r"(api.?key|(?<![a-z_])(access.?|auth\w*.?)?token\b|credential|certification|secret)"
KEY = _any(
    r"no connected db|no_db_connection",
    rf"(?<![a-z])(invalid|incorrect|wrong|missing|expired|unknown|bad|no|without)(?![a-z]).{{0,12}}{_KEY}",
    rf"{_KEY}.{{0,40}}(invalid|incorrect|not valid|missing|expired|required|not found|not exist|n.t exist|failed)",
    r"unauthori[sz]ed|authentication|login fail|invalid_key|user not found",
    r"令牌.{0,6}(无效|过期|不存在)|无效的令牌|密钥.{0,6}(无效|错误|过期)|鉴权|认证失败|身份验证",
)
EXPIRED = _any(r"expired", r"过期")
NO_DATABASE = _any(r"no connected db|no_db_connection")
NOT_RECEIVED = _any(
    rf"(\bno|missing|without|provide|carry|not receiv\w*|didn.t \w+).{{0,16}}({_KEY}|authorization|authentication)",
    r"jwt is missing",
    r"未.{0,4}(提供|收到|携带)",
)
WRONG = _any(r"invalid|incorrect|wrong|not valid|无效|错误")
PLACE = _any(r"\bip\b|\baddress|whitelist|allow-?list|region|country|白名单|地区|网段")
NO_ROUTE = _any(r"default backend|no route|route not found|no matching route|路由")
LOADING = _any(r"loading (the )?model|model.{0,20}(is |still |being )+load", r"warming up|starting up|加载中")
CRASHED = _any(r"enginecore|engine.{0,20}(dead|died|crash)|backgroundloop", r"out of memory|\bcuda|\b(npu|hccl|nccl)\b")
OVERLOAD = _any(r"overload|too busy|\bbusy\b|at capacity|过载|负载|繁忙")
PARALLEL = _any(r"parallel|concurren|并发|x-envoy-overloaded|overflow|queue.?(is )?(full|timeout)|too many connections")
PER_MINUTE = _any(
    r"per.?(minute|min\b|second|hour|day)|\b[rtqc]p[smd]\b",
    r"rate.?(limit|quota)|throttl|too many requests per|频率|每分钟",
)


def limit_kind(exchange: Exchange) -> str:
    """``parallel`` or ``rate``, from what a refusal says of itself; empty where it does not say."""
    stated = exchange.headers.get("rate_limit_type", "")
    if stated:
        return "parallel" if "parallel" in stated else "rate"
    # The headers tell of every limit there is, not of the one that was met, unless it has nothing left.
    words = re.sub(r"x-ratelimit-[\w-]*: \S*", "", error_words(exchange))
    if PARALLEL.search(words):
        return "parallel"
    used_up = any(
        re.fullmatch(r"x-ratelimit-.*remaining-(requests|tokens)", name) and value.strip() == "0"
        for name, value in exchange.headers.items()
    )
    return "rate" if used_up or PER_MINUTE.search(words) else ""


def waiting(exchange: Exchange) -> str:
    """What the answer says about waiting, in words."""
    asked = retry_after_seconds(exchange.headers)
    if asked is None:
        return "without Retry-After"
    stated = exchange.headers.get("retry-after", "").strip()
    as_date = bool(stated) and not stated.replace(".", "", 1).isdigit()
    return say("Retry-After {asked:.0f} s", asked=asked) + (
        say(" (given as the date {stated})", stated=stated) if as_date else ""
    )
