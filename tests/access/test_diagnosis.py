"""What gateways, engines and web servers really answer, and the layer and cause that each answer means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from pytest_thermal.access.diagnosis import Diagnosis, Setting, diagnose
from pytest_thermal.access.words import limit_kind, waiting
from pytest_thermal.bench import Domain
from pytest_thermal.model import LAYERS
from pytest_thermal.transport import Exchange, Fault, route_to

KEY = "sk-bench-7f3a9c1e5b2d8a6f4c0e9b7d5a3f1c8e"
BASE = "https://gw.example/v1"

REASONS = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 429: "Too Many Requests"}


def answered(
    status: int, body: object = b"", *, endpoint: str = "models", base: str = BASE, **headers: str
) -> Exchange:
    content = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    named = {name if name.startswith("rate_") else name.replace("_", "-"): value for name, value in headers.items()}
    if not isinstance(body, bytes | str):
        named.setdefault("content-type", "application/json")
    listing = endpoint == "models"
    return Exchange(
        method="GET" if listing else "POST",
        url=base + ("/models" if listing else "/chat/completions"),
        sent=None if listing else {"model": "qwen3-8b"},
        status=status,
        reason=REASONS.get(status, ""),
        headers=httpx.Headers(named),
        body=content,
        latency_seconds=0.01,
    )


def setting(
    endpoint: str = "models",
    *,
    key: str | None = KEY,
    key_proven: bool = False,
    base: str = BASE,
    environ: Mapping[str, str] | None = None,
    variables: tuple[str, ...] = (),
) -> Setting:
    return Setting(
        domain=Domain(
            name="east",
            base_url=base,
            key=SecretStr(key) if key is not None else None,
            key_origin="$GW_API_KEY" if key is not None else "none",
        ),
        route=route_to(base, environ or {}),
        endpoint=endpoint,
        model=None if endpoint == "models" else "qwen3-8b",
        key_proven=key_proven,
        key_variables=variables,
    )


def page(title: str, server: str = "nginx") -> bytes:
    text = f"<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n"
    return f"{text}<hr><center>{server}</center>\r\n</body>\r\n</html>\r\n".encode()


def openai(message: str, kind: str = "invalid_request_error", code: Any = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One answer and what it means."""

    name: str
    status: int
    body: object = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    endpoint: str = "models"
    layer: str
    likely: str
    keyless: bool = False
    proven: bool = False


def rows(endpoint: str, layer: str, likely: str, *entries: tuple[Any, ...], **settings: Any) -> list[Row]:
    """Rows that mean the same: ``(name, status, body[, headers])``."""
    return [
        Row(
            name=entry[0],
            status=entry[1],
            body=entry[2],
            headers=entry[3] if len(entry) > 3 else {},
            endpoint=endpoint,
            layer=layer,
            likely=likely,
            **settings,
        )
        for entry in entries
    ]


HTML = {"content_type": "text/html"}
TEXT = {"content_type": "text/plain"}
MASKED = "Incorrect API key provided: sk-ben****1c8e. You can find your API key in the console."

WRONG_KEY = rows(
    "models",
    "key",
    "wrong, disabled",
    ("OpenAI", 401, openai(MASKED, code="invalid_api_key")),
    ("vLLM: the error is a string", 401, {"error": "Unauthorized"}),
    ("llama.cpp: the code is a number", 401, openai("Invalid API Key", "authentication_error", 401)),
    ("llama-cpp-python: a detail", 401, {"detail": "Invalid API key"}),
    ("LiteLLM with keys of its own", 401, openai("Authentication Error, bad key", "auth_error", "401")),
    ("aimock", 401, openai("Invalid API key", code="invalid_api_key"), {"www_authenticate": 'Bearer realm="aimock"'}),
    ("SGLang", 401, {"error": "Unauthorized"}),
    ("TGI: an empty 401", 401, b""),
    ("Ollama's cloud", 401, {"error": "unauthorized"}),
    (
        "Google: a 400",
        400,
        {
            "error": {
                "code": 400,
                "message": "API key not valid. Please pass a valid API key.",
                "status": "INVALID_ARGUMENT",
            }
        },
    ),
    (
        "Google: in a list",
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "API key not valid. Please pass a valid API key.",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
    ),
    (
        "Azure",
        401,
        {
            "statusCode": 401,
            "message": "Access denied due to invalid subscription key or wrong API endpoint."
            " Make sure to provide a valid key for an active subscription.",
        },
    ),
    ("Azure, newer", 401, openai("Access denied due to invalid subscription key or wrong API endpoint.", code="401")),
    ("DashScope", 401, openai("Incorrect API key provided. ", code="invalid_api_key")),
    ("DashScope, native", 401, {"code": "InvalidApiKey", "message": "Invalid API-key provided.", "request_id": "1"}),
    (
        "Volcengine",
        401,
        openai("The API key or AK/SK in the request is missing or invalid.", "Unauthorized", "AuthenticationError"),
    ),
    ("Volcengine, newer", 401, openai("The API key doesn't exist.", "Unauthorized", "AuthenticationError")),
    ("Zhipu", 401, {"error": {"code": "1000", "message": "身份验证失败。"}}),
    (
        "Zhipu, a token that is none",
        401,
        {"error": {"code": "1002", "message": "Authorization Token非法，请确认正确传递。"}},
    ),
    ("one-api", 401, openai("无效的令牌 (request id: 2026113009)", "one_api_error")),
    ("one-api, state", 401, openai("该令牌状态不可用", "one_api_error")),
    ("SiliconFlow: a JSON string", 401, b'"Invalid token"'),
    (
        "DeepSeek",
        401,
        openai(
            "Authentication Fails, Your api key: ****1c8e is invalid", "authentication_error", "invalid_request_error"
        ),
    ),
    ("Moonshot", 401, openai("Invalid Authentication", "invalid_authentication_error")),
    ("Baidu", 401, openai("IAM Certification failed", code="invalid_iam_token")),
    ("Baidu, older: with 200", 200, {"error_code": 110, "error_msg": "Access token invalid or no longer valid"}),
    ("MiniMax: with 200", 200, {"base_resp": {"status_code": 1004, "status_msg": "login fail: invalid api key"}}),
    ("with 200 and a flag", 200, {"success": False, "message": "无效的令牌"}),
    ("with 200 and a code", 200, {"code": 401, "msg": "unauthorized"}),
    ("with 200 and an error", 200, openai("Invalid API key", code=401)),
    ("Kong: JWT or key of nobody", 401, {"message": "Unauthorized", "request_id": "1"}),
    ("Kong, older", 401, {"message": "Invalid authentication credentials"}),
    ("APISIX", 401, {"message": "Invalid API key in request"}),
    ("Cloudflare's gateway", 401, {"success": False, "errors": [{"code": 10000, "message": "Authentication error"}]}),
    ("Triton behind nginx: a page, no challenge", 401, page("401 Authorization Required"), HTML),
    ("Istio: JWT that does not verify", 401, "Jwt verification fails", {**TEXT, "server": "istio-envoy"}),
    (
        "Envoy in front, told by every answer of it",
        401,
        {"error": "Unauthorized"},
        {"x_envoy_upstream_service_time": "3", "server": "envoy"},
    ),
)

KEY_OTHERWISE = [
    *rows(
        "models",
        "key",
        "has expired",
        ("one-api", 401, openai("该令牌已过期", "one_api_error")),
        ("Istio", 401, "Jwt is expired", TEXT),
        ("Zhipu", 401, {"error": {"code": "1003", "message": "Authentication Token已过期，请重新生成/获取"}}),
    ),
    *rows(
        "models",
        "key",
        "no database of other keys",
        ("LiteLLM", 400, openai("No connected db.", "no_db_connection", "400")),
    ),
    *rows(
        "models",
        "key",
        "looks for the key in another header",
        ("Kong", 401, {"message": "No API key found in request"}, {"www_authenticate": "Key"}),
        ("APISIX", 401, {"message": "Missing API key found in request"}),
        ("Higress", 401, "Request denied by Key Auth check. No API key found in request.", TEXT),
        ("OpenAI", 401, openai("You didn't provide an API key.")),
        ("Istio", 401, "Jwt is missing", TEXT),
        ("Zhipu", 401, {"error": {"code": "1001", "message": "Header中未收到Authentication参数，无法进行身份验证。"}}),
    ),
    *rows(
        "models",
        "key",
        "names no key",
        ("LiteLLM without prisma", 500, "Internal Server Error", TEXT),
        ("LiteLLM", 401, openai("Authentication Error, No api key passed in.", "auth_error", "401")),
        (
            "Google",
            403,
            {
                "error": {
                    "code": 403,
                    "message": "Method doesn't allow unregistered callers (callers without"
                    " established identity). Please use API Key.",
                    "status": "PERMISSION_DENIED",
                }
            },
        ),
        ("vLLM", 401, {"error": "Unauthorized"}),
        keyless=True,
    ),
    *rows(
        "models",
        "key",
        "lacks the right",
        (
            "OpenAI, restricted key",
            403,
            openai("You have insufficient permissions for this operation. Missing scopes: api.model.read."),
        ),
        ("Kong, ACL", 403, {"message": "You cannot consume this service"}),
        (
            "Volcengine",
            403,
            openai(
                "The request failed because you do not have access to the requested resource.",
                "Forbidden",
                "AccessDenied",
            ),
        ),
        ("Zhipu", 403, {"error": {"code": "1220", "message": "您无权访问 models。"}}),
        ("an empty 403", 403, b""),
    ),
    *rows(
        "models",
        "key",
        "address or region",
        ("new-api", 403, openai("该令牌只能在指定网段使用", "new_api_error")),
        ("APISIX", 403, {"message": "Your IP address is not allowed"}),
        (
            "OpenAI",
            403,
            openai(
                "Country, region, or territory not supported",
                "request_forbidden",
                "unsupported_country_region_territory",
            ),
        ),
    ),
    *rows(
        "chat",
        "key",
        "lacks the right for model 'qwen3-8b'",
        (
            "LiteLLM: a 401",
            401,
            openai(
                "key not allowed to access model. This key can only access models=['a']. Tried to access qwen3-8b",
                "key_model_access_denied",
                "401",
            ),
        ),
        ("OpenAI", 403, openai("Project `proj_1` does not have access to model `qwen3-8b`", code="model_not_found")),
        ("new-api", 403, openai("该令牌无权使用模型：qwen3-8b", "new_api_error")),
        ("DashScope", 403, openai("Model access denied.", "Model.AccessDenied", "Model.AccessDenied")),
        (
            "Volcengine: a 404",
            404,
            openai(
                "Your account 21 has not activated the model qwen3-8b. Please activate the model"
                " service in the Ark Console.",
                "NotFound",
                "ModelNotOpen",
            ),
        ),
        proven=True,
    ),
]

UPSTREAM = [
    *rows(
        "chat",
        "chat",
        "not this bench's key",
        (
            "LiteLLM",
            401,
            openai(
                "litellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect API key"
                " provided: sk-up****tail",
                "auth_error",
                "401",
            ),
        ),
        ("new-api", 401, openai("上游渠道鉴权失败", "new_api_error")),
    ),
    *rows(
        "chat",
        "chat",
        "not this bench's key",
        (
            "one-api hands OpenAI's 401 on",
            401,
            openai("Incorrect API key provided: sk-up****tail", code="invalid_api_key"),
        ),
        proven=True,
    ),
    *rows(
        "chat",
        "key",
        "wrong, disabled",
        ("sglang-router: the list was open, so nothing is proven", 401, {"error": "Unauthorized"}),
        (
            "and Envoy says upstream in every header",
            401,
            {"error": "Unauthorized"},
            {"x_envoy_upstream_service_time": "3"},
        ),
    ),
]

NO_MONEY = rows(
    "chat",
    "quota",
    "no credit or quota left",
    ("DeepSeek", 402, openai("Insufficient Balance", "unknown_error", "invalid_request_error")),
    ("an empty 402", 402, b""),
    (
        "OpenAI",
        429,
        openai(
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            "insufficient_quota",
        ),
    ),
    ("SiliconFlow", 403, {"code": 30001, "message": "Sorry, your account balance is insufficient", "data": None}),
    (
        "DashScope",
        400,
        openai("Access denied, please make sure your account is in good standing.", "Arrearage", "Arrearage"),
    ),
    (
        "Volcengine",
        403,
        openai("The request failed because your account has an overdue balance.", "Forbidden", "AccountOverdueError"),
    ),
    ("Zhipu", 429, {"error": {"code": "1113", "message": "余额不足或无可用资源包,请充值。"}}),
    ("one-api, user", 403, openai("用户额度不足", "one_api_error", "insufficient_user_quota")),
    ("one-api, token: a 401", 401, openai("该令牌额度已用尽", "one_api_error")),
    ("new-api", 403, openai("预扣费额度失败, 用户剩余额度: ＄0.1", "new_api_error", "pre_consume_token_quota_failed")),
    ("LiteLLM", 400, openai("Budget has been exceeded! Current cost: 1.2, Max budget: 1.0", "budget_exceeded", "400")),
    ("OpenRouter", 402, {"error": {"message": "Insufficient credits", "code": 402}}),
    (
        "Moonshot",
        429,
        openai("Your account is suspended, please check your plan and billing details", "exceeded_current_quota_error"),
    ),
    proven=True,
)

UNKNOWN_MODEL = rows(
    "chat",
    "chat",
    "no engine behind the gateway serves it",
    (
        "OpenAI",
        404,
        openai("The model `qwen3-8b` does not exist or you do not have access to it.", code="model_not_found"),
    ),
    ("vLLM", 404, openai("The model `qwen3-8b` does not exist. Valid aliases: tiny.", "NotFoundError", 404)),
    (
        "SGLang",
        404,
        {"object": "error", "message": "The model 'qwen3-8b' does not exist", "type": "NotFound", "code": 404},
    ),
    ("transformers serve", 400, {"detail": "Server is pinned to 'tiny'; requested 'qwen3-8b'."}),
    (
        "LiteLLM",
        400,
        openai(
            "/chat/completions: Invalid model name passed in model=qwen3-8b. Call `/v1/models` to view"
            " available models for your key.",
            code="400",
        ),
    ),
    (
        "LiteLLM, told by the engine",
        404,
        openai(
            "litellm.NotFoundError: NotFoundError: OpenAIException - The model `qwen3-8b` does not exist.", code="404"
        ),
    ),
    ("one-api", 503, openai("当前分组 default 下对于模型 qwen3-8b 无可用渠道 (request id: 1)", "one_api_error")),
    (
        "new-api",
        503,
        openai("分组 default 下模型 qwen3-8b 无可用渠道（distributor）", "new_api_error", "model_not_found"),
    ),
    ("new-api in English", 503, openai("No available channel for model qwen3-8b under group default", "new_api_error")),
    ("Ollama, native", 404, {"error": "model 'qwen3-8b' not found, try pulling it first"}),
    ("Ollama", 404, openai('model "qwen3-8b" not found, try pulling it first', "api_error")),
    ("Triton", 400, {"error": "Request for unknown model: 'qwen3-8b' is not found"}),
    ("DeepSeek", 400, openai("Model Not Exist")),
    ("SiliconFlow", 400, {"code": 20012, "message": "Model does not exist. Please check it carefully.", "data": None}),
    (
        "DashScope",
        404,
        openai("The model `qwen3-8b` does not exist or you do not have access to it.", code="model_not_found"),
    ),
    (
        "Volcengine",
        404,
        openai(
            "The model or endpoint qwen3-8b does not exist or you do not have access to it.",
            "NotFound",
            "InvalidEndpointOrModel.NotFound",
        ),
    ),
    ("Zhipu", 400, {"error": {"code": "1211", "message": "模型不存在，请检查模型代码。"}}),
    ("Azure", 404, openai("The API deployment for this resource does not exist.", code="DeploymentNotFound")),
    ("OpenRouter", 400, {"error": {"message": "qwen3-8b is not a valid model ID", "code": 400}}),
    (
        "Google",
        404,
        [
            {
                "error": {
                    "code": 404,
                    "message": "models/qwen3-8b is not found for API version v1main",
                    "status": "NOT_FOUND",
                }
            }
        ],
    ),
    (
        "Mistral",
        400,
        {"object": "error", "message": "Invalid model: qwen3-8b", "type": "invalid_model", "code": "1500"},
    ),
    ("xinference", 400, {"detail": "Model not found in the model list, uid: qwen3-8b"}),
    proven=True,
)

LIMITS = [
    *rows(
        "chat",
        "quota",
        "used up its requests or tokens",
        (
            "LiteLLM rpm",
            429,
            openai(
                "Rate limit exceeded for api_key. Limit type: requests. Current limit: 3", "throttling_error", "429"
            ),
            {"retry_after": "60", "rate_limit_type": "requests", "reset_at": "2026-11-30 07:14:48 UTC"},
        ),
        (
            "LiteLLM, of a deployment",
            429,
            openai("No deployments available for selected model.", "rate_limit_error", "429"),
        ),
        (
            "LiteLLM, empty cooldown list",
            429,
            openai("No deployments available for selected model, Try again in 5 seconds. cooldown_list=[]", code="429"),
        ),
        ("Envoy", 429, "local_rate_limited", {**TEXT, "x_ratelimit_reset": "2"}),
        ("nginx", 429, page("429 Too Many Requests"), HTML),
        (
            "llmock",
            429,
            openai("Rate limit exceeded", "rate_limit_error", "rate_limit_exceeded"),
            {"retry_after": "2", "retry_after_ms": "1412", "x_ratelimit_reset_requests": "59.9s"},
        ),
        (
            "OpenAI",
            429,
            openai(
                "Rate limit reached for qwen3-8b on requests per min (RPM): Limit 3, Used 3",
                "requests",
                "rate_limit_exceeded",
            ),
            {"retry_after": "20"},
        ),
        (
            "DashScope",
            429,
            openai(
                "Requests rate limit exceeded, please try again later.", "Throttling.RateQuota", "Throttling.RateQuota"
            ),
        ),
        (
            "Volcengine",
            429,
            openai(
                "The Requests Per Minute (RPM) limit of the associated endpoint for your account has been exceeded.",
                "TooManyRequests",
                "RateLimitExceeded.EndpointRPMExceeded",
            ),
        ),
        ("Zhipu", 429, {"error": {"code": "1303", "message": "您当前使用该API的频率过高，请降低频率"}}),
        ("SiliconFlow", 429, {"message": "Request was rejected due to rate limiting.", "data": None}),
        ("Kong", 429, {"message": "API rate limit exceeded"}, {"retry_after": "30"}),
        ("an empty 429", 429, b""),
    ),
    *rows(
        "chat",
        "quota",
        "someone else is using it",
        (
            "LiteLLM, at once",
            429,
            openai("Rate limit exceeded. Limit type: max_parallel_requests", "throttling_error", "429"),
            {"rate_limit_type": "max_parallel_requests", "retry_after": "60"},
        ),
        ("Zhipu", 429, {"error": {"code": "1302", "message": "您当前使用该API的并发数过高，请降低并发"}}),
        (
            "Moonshot",
            429,
            openai(
                "request reached max organization concurrency: 1, please try again after 1 seconds",
                "rate_limit_reached_error",
            ),
        ),
    ),
    *rows(
        "chat",
        "chat",
        "sheds load",
        (
            "Envoy's circuit breaker",
            503,
            "upstream connect error or disconnect/reset before headers. reset reason: overflow",
            {**TEXT, "x_envoy_overloaded": "true"},
        ),
        ("TGI", 429, {"error": "Model is overloaded", "error_type": "overloaded"}),
        (
            "Moonshot",
            429,
            openai("The engine is currently overloaded, please try again later", "engine_overloaded_error"),
        ),
        ("DeepSeek", 503, openai("Service is too busy. We advise users to temporarily switch.", "service_unavailable")),
        (
            "SiliconFlow",
            503,
            {"code": 50505, "message": "Model service overloaded. Please try again later.", "data": None},
        ),
        ("Anthropic's status", 529, {"error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ),
    *rows(
        "chat",
        "chat",
        "gave up waiting",
        ("sglang-router: an empty 408", 408, b""),
        ("LiteLLM, upstream hangs", 408, openai("litellm.Timeout: APITimeoutError - Request timed out.", code="408")),
        ("Envoy", 504, "upstream request timeout", TEXT),
        ("nginx", 504, page("504 Gateway Time-out"), HTML),
    ),
    *rows(
        "chat",
        "chat",
        "took every engine of this model out",
        (
            "LiteLLM cooldown",
            429,
            openai(
                "No deployments available for selected model, Try again in 60 seconds. Passed"
                " model=qwen3-8b. cooldown_list=[('1', {'Exception Received': 'litellm.x'})]",
                code="429",
            ),
        ),
    ),
]

ENGINE = [
    *rows(
        "chat",
        "chat",
        "engine crashed",
        (
            "vLLM",
            500,
            openai(
                "EngineCore encountered an issue. See stack trace (above) for the root cause.",
                "InternalServerError",
                500,
            ),
        ),
        ("vLLM, older", 500, "Background loop has errored already. AsyncEngineDeadError: engine dead", TEXT),
        ("TGI", 424, {"error": "Request failed during generation: CUDA out of memory", "error_type": "generation"}),
        ("MindIE", 500, {"error": "NPU out of memory", "error_type": "Incomplete Generation"}),
        proven=True,
    ),
    *rows(
        "chat",
        "chat",
        "cannot reach its engine, or failed on this request",
        ("LiteLLM, upstream dead", 500, openai("litellm.InternalServerError: Connection error.", code="500")),
        ("Portkey", 500, {"status": "failure", "message": "Something went wrong"}),
        (
            "an engine that stumbles over its input",
            500,
            {"error": "Input validation error", "error_type": "validation"},
        ),
        ("and nobody asked for a key", 500, "Internal Server Error", TEXT),
        keyless=True,
    ),
    *rows(
        "chat",
        "chat",
        "engine behind it is not",
        ("sglang-router", 503, openai("No workers are ready", "service_unavailable")),
        ("nginx", 502, page("502 Bad Gateway"), HTML),
    ),
    *rows(
        "models",
        "http",
        "still loading its model",
        ("llama.cpp", 503, openai("Loading model", "unavailable_error", 503)),
        ("xinference", 503, {"detail": "Model is still loading"}),
    ),
    *rows(
        "chat", "chat", "still loading its model", ("llama.cpp", 503, openai("Loading model", "unavailable_error", 503))
    ),
    *rows(
        "chat",
        "chat",
        "refuses a request in OpenAI's form",
        ("vLLM, context", 400, openai("This model's maximum context length is 512 tokens.", "BadRequestError", 400)),
        (
            "OpenAI, limit",
            400,
            openai(
                "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1",
                code="integer_below_min_value",
            ),
        ),
        (
            "DashScope, budget",
            400,
            openai("The thinking_budget parameter must be a positive integer", code="invalid_parameter_error"),
        ),
        ("FastAPI", 422, {"detail": [{"loc": ["body", "messages"], "msg": "Field required", "type": "missing"}]}),
        proven=True,
    ),
]

FRONT = [
    *rows(
        "models",
        "http",
        "answers instead of the gateway",
        ("corporate login", 200, b"<!DOCTYPE html><html><title>Sign in</title><form>", HTML),
        (
            "a page that calls itself JSON",
            200,
            b"<html><body>Portal</body></html>",
            {"content_type": "application/json"},
        ),
        ("captive portal", 511, page("Network Authentication Required"), HTML),
        ("nginx, header too large", 400, page("400 Request Header Or Cookie Too Large"), HTML),
        ("Cloudflare's challenge", 403, page("Just a moment..."), {**HTML, "cf_ray": "8-FRA", "server": "cloudflare"}),
        ("Cloudflare 1020", 403, "error code: 1020", {**TEXT, "server": "cloudflare"}),
        ("nginx deny", 403, page("403 Forbidden"), HTML),
        ("AWS WAF", 403, page("403 Forbidden", "awselb/2.0"), {**HTML, "server": "awselb/2.0"}),
        ("Istio", 403, "RBAC: access denied", {**TEXT, "server": "istio-envoy"}),
        (
            "squid, denied",
            403,
            page("ERROR: The requested URL could not be retrieved", "squid"),
            {**HTML, "server": "squid/5.7", "x_squid_error": "ERR_ACCESS_DENIED 0", "via": "1.1 px (squid/5.7)"},
        ),
    ),
    *rows(
        "models",
        "http",
        "cannot reach the gateway",
        (
            "squid, no connection",
            503,
            page("ERROR: The requested URL could not be retrieved", "squid"),
            {**HTML, "server": "squid/5.7", "x_squid_error": "ERR_CONNECT_FAIL 111"},
        ),
        ("squid, no name", 503, page("ERROR"), {**HTML, "x_squid_error": "ERR_DNS_FAIL 0"}),
    ),
    *rows(
        "models",
        "http",
        "wants a login of its own",
        (
            "squid, login",
            407,
            page("ERROR: Cache Access Denied"),
            {**HTML, "x_squid_error": "ERR_CACHE_ACCESS_DENIED 0"},
        ),
    ),
    *rows(
        "models",
        "http",
        "wants its own user and password",
        (
            "nginx auth_basic",
            401,
            page("401 Authorization Required"),
            {**HTML, "www_authenticate": 'Basic realm="lab"'},
        ),
        ("Kerberos", 401, b"", {"www_authenticate": "Negotiate"}),
    ),
    *rows(
        "models",
        "http",
        "the gateway behind it is not",
        ("nginx 502", 502, page("502 Bad Gateway"), HTML),
        ("AWS ALB", 503, page("503 Service Temporarily Unavailable", ""), {**HTML, "server": "awselb/2.0"}),
        ("nginx limit_req, or no backend", 503, page("503 Service Temporarily Unavailable"), HTML),
        ("Envoy, nobody healthy", 503, "no healthy upstream", TEXT),
        (
            "Envoy, no connection",
            503,
            "upstream connect error or disconnect/reset before headers. reset reason: connection failure",
            TEXT,
        ),
        ("Cloudflare 521", 521, "error code: 521", {**TEXT, "cf_ray": "8-FRA"}),
        ("HAProxy", 503, b"<html><body><h1>503 Service Unavailable</h1>\nNo server is available</body></html>", HTML),
    ),
    *rows(
        "models",
        "http",
        "gave up waiting",
        ("nginx 504", 504, page("504 Gateway Time-out"), HTML),
        ("Cloudflare 524", 524, "error code: 524", TEXT),
    ),
    *rows(
        "models",
        "http",
        "maintenance or overloaded, Retry-After 120 s",
        ("nginx maintenance", 503, page("503 Service Temporarily Unavailable"), {**HTML, "retry_after": "120"}),
    ),
    *rows("models", "http", "swallowed the answer", ("204", 204, b""), ("200 and nothing", 200, b"")),
    *rows(
        "models", "http", "fails on a request as simple as this", ("with 200", 200, {"code": 500, "msg": "系统异常"})
    ),
    *rows(
        "models",
        "http",
        "a login page",
        ("oauth2-proxy", 302, b"", {"location": "https://sso.example/oauth2/start?rd=secret"}),
    ),
    *rows(
        "models",
        "http",
        "lives at another address",
        ("http to https", 301, page("301 Moved Permanently"), {**HTML, "location": "https://gw.example/v1/models"}),
    ),
    *rows(
        "chat",
        "http",
        "answers instead of the gateway",
        ("a firewall that dislikes bodies", 403, page("403 Forbidden"), HTML),
    ),
    *rows(
        "chat",
        "chat",
        "answers instead of the gateway",
        ("a login page on chat only", 200, b"<!DOCTYPE html><html><title>Sign in</title>", HTML),
    ),
    *rows("chat", "chat", "swallowed the answer", ("200 and nothing on chat", 200, b"")),
]

PATH = [
    *rows(
        "models",
        "models",
        "one level of path too many or too few",
        ("OpenAI", 404, openai("Invalid URL (GET /v1/v1/models)")),
        ("FastAPI", 404, {"detail": "Not Found"}),
        ("nginx", 404, page("404 Not Found"), HTML),
        ("Go", 404, "404 page not found\n", TEXT),
        ("a method that is not allowed", 405, {"detail": "Method Not Allowed"}),
        ("Azure", 404, openai("Resource not found", code="404")),
        ("an empty 404", 404, b""),
    ),
    *rows(
        "models",
        "models",
        "knows no route",
        ("Kubernetes ingress", 404, "default backend - 404", TEXT),
        ("Kong", 404, {"message": "no Route matched with those values"}),
        ("APISIX", 404, {"error_msg": "404 Route Not Found"}),
    ),
    *rows(
        "chat",
        "chat",
        "no chat completions at this path",
        ("FastAPI", 404, {"detail": "Not Found"}),
        ("an empty 405", 405, b""),
        proven=True,
    ),
    *rows(
        "models",
        "models",
        "no OpenAI-compatible gateway",
        (
            "Portkey",
            400,
            {"status": "failure", "message": "Either x-portkey-config or x-portkey-provider header is required"},
        ),
    ),
]

ALL = [*WRONG_KEY, *KEY_OTHERWISE, *UPSTREAM, *NO_MONEY, *UNKNOWN_MODEL, *LIMITS, *ENGINE, *FRONT, *PATH]


def found_in(exchange: Exchange, known: Setting) -> Diagnosis:
    found = diagnose(exchange, known)
    assert found is not None
    assert found.layer in LAYERS
    assert KEY not in found.seen + found.likely + found.advice
    assert KEY[4:] not in found.seen + found.likely + found.advice
    return found


@pytest.mark.parametrize("row", ALL, ids=[f"{row.layer}-{row.status}-{row.name}" for row in ALL])
def test_what_an_answer_means(row: Row) -> None:
    exchange = answered(row.status, row.body, endpoint=row.endpoint, **row.headers)
    known = setting(row.endpoint, key=None if row.keyless else KEY, key_proven=row.proven)
    found = found_in(exchange, known)
    assert (found.layer, row.likely in found.likely) == (row.layer, True), found
    assert str(row.status) in found.seen
    assert exchange.line in found.seen
    assert found.advice


@pytest.mark.parametrize("row", ALL, ids=[f"{row.layer}-{row.status}-{row.name}" for row in ALL])
def test_the_rows_layer_does_not_hang_on_the_servers_spelling(row: Row) -> None:
    """JSON labelled as text, other header case, a byte order mark: the meaning stays."""
    body = row.body if isinstance(row.body, bytes | str) else "\ufeff" + json.dumps(row.body, indent=1)
    headers = {**({} if isinstance(row.body, bytes | str) else {"Content_Type": "text/plain"}), **row.headers}
    exchange = answered(
        row.status, body, endpoint=row.endpoint, **{name.title(): text for name, text in headers.items()}
    )
    known = setting(row.endpoint, key=None if row.keyless else KEY, key_proven=row.proven)
    assert found_in(exchange, known).layer == row.layer


# --- answers without a fault ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"object": "list", "data": []},
        {"object": "list", "data": [{"id": "a"}], "success": True, "code": 0, "message": "ok"},
        {"choices": [{"message": {"content": "OK"}}], "error": None},
        {"choices": [{"message": {"content": "OK"}}], "base_resp": {"status_code": 0, "status_msg": ""}},
        {"choices": [{"message": {"content": "OK"}}], "code": 200, "msg": "success"},
        {"data": None, "object": "list"},
        {"data": [], "code": 20000, "message": "Ok", "status": True},
        {"models": []},
        {"id": "1", "object": "chat.completion"},
        [],
        "text",
        12,
    ],
)
def test_a_whole_answer_without_an_error_in_it_is_none(body: object) -> None:
    assert diagnose(answered(200, json.dumps(body)), setting()) is None
    assert diagnose(answered(200, json.dumps(body), endpoint="chat"), setting("chat")) is None


@pytest.mark.parametrize("status", [200, 201, 202])
def test_any_2xx_is_an_answer(status: int) -> None:
    assert diagnose(answered(status, {"data": []}), setting()) is None


# --- the key's own oddities ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key, words",
    [
        ('"sk-abcdefghijklmnop"', "stands in quotes"),
        ("sk-abcdefghijklmnop'", "stands in quotes"),
        ("Bearer sk-abcdefghijklmnop", "begins with “Bearer ”"),
        ("${TAOTOKEN_API_KEY}", "unexpanded variable"),
        ("$TAOTOKEN_API_KEY", "unexpanded variable"),
        ("%TAOTOKEN_API_KEY%", "unexpanded variable"),
        ("your-api-key-here", "placeholder"),
        ("your key here", "placeholder"),
        ("sk-xxxxxxxx", "placeholder"),
        ("changeme", "placeholder"),
        ("EMPTY-placeholder", "placeholder"),
        ("sk-abcdefgh ijklmnop", "white space in the middle"),
        ("sk-abcdefghijklmnop", "wrong, disabled"),
    ],
)
def test_a_key_that_looks_odd_is_said_to(key: str, words: str) -> None:
    found = diagnose(answered(401, {"error": "Unauthorized"}), setting(key=key))
    assert found is not None
    assert words in found.likely
    assert "$GW_API_KEY" in found.likely
    assert key not in found.likely + found.seen + found.advice


def test_other_variables_that_may_hold_a_key_are_named() -> None:
    known = setting(variables=("GW_API_KEY", "OPENAI_API_KEY", "TAOTOKEN_API_KEY"))
    advice = found_in(answered(401, {"error": "Unauthorized"}), known).advice
    assert "also set here: $OPENAI_API_KEY, $TAOTOKEN_API_KEY" in advice


def test_the_tail_of_a_key_that_the_gateway_echoes_is_not_shown() -> None:
    found = found_in(answered(401, openai(MASKED)), setting())
    assert "1c8e" not in found.seen
    assert "Incorrect API key provided" in found.seen


# --- redirects -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "location, right",
    [
        ("https://new.example/v1/models", "https://new.example/v1"),
        ("/v2/models", "https://gw.example/v2"),
        ("models/", "https://gw.example/v1"),
        ("//cdn.example/v1/models/", "https://cdn.example/v1"),
    ],
)
def test_a_redirect_names_the_right_base_url(location: str, right: str) -> None:
    found = found_in(answered(308, b"", location=location), setting())
    assert (found.layer, found.advice) == ("http", f"set base_url to {right}")


def test_a_redirect_shows_no_ticket() -> None:
    found = found_in(answered(302, b"", location="https://sso.example/login?ticket=ST-1234"), setting())
    assert "ST-1234" not in found.seen + found.advice


def test_a_redirect_to_nowhere_is_told() -> None:
    assert "does not name" in found_in(answered(302, b""), setting()).seen


# --- plain HTTP to a TLS port --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body, kind",
    [
        (page("400 The plain HTTP request was sent to HTTPS port"), "text/html"),
        (b"Client sent an HTTP request to an HTTPS server.\n", "text/plain"),
        (
            b"<html><title>400</title><p>Reason: You're speaking plain HTTP to an SSL-enabled server port.</html>",
            "text/html",
        ),
    ],
)
def test_plain_http_to_a_tls_port_is_said(body: bytes, kind: str) -> None:
    base = "http://gw.example:8443/v1"
    found = found_in(answered(400, body, base=base, content_type=kind), setting(base=base))
    assert found.layer == "http"
    assert "https:// instead of http://" in found.advice


# --- through a proxy -----------------------------------------------------------------------------------------


PROXIED = {"http_proxy": "http://user:hunter2@proxy.corp.example:3128", "https_proxy": "http://proxy.corp.example:3128"}
PLAIN = "http://gw.example/v1"


@pytest.mark.parametrize("status", [200, 403, 407, 502, 503])
def test_a_page_that_comes_by_a_proxy_names_it(status: int) -> None:
    known = setting(base=PLAIN, environ=PROXIED)
    found = found_in(answered(status, page("Blocked"), base=PLAIN, content_type="text/html"), known)
    assert found.layer == "http"
    assert "proxy.corp.example:3128 (from $http_proxy)" in found.likely
    assert "hunter2" not in found.likely + found.advice


@pytest.mark.parametrize(
    "text, likely",
    [
        ("407 Proxy Authentication Required", "a login of its own"),
        ("403 Forbidden", "rules do not let this bench through"),
        ("503 Service Unavailable", "cannot reach the gateway"),
    ],
)
def test_a_tunnel_that_was_refused(text: str, likely: str) -> None:
    exchange = Exchange(method="GET", url=BASE + "/models", fault=Fault.PROXY, fault_text=text)
    found = found_in(exchange, setting(environ=PROXIED))
    assert found.layer == "http"
    assert likely in found.likely
    assert "proxy.corp.example:3128" in found.seen


# --- faults of transport -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault, at_models, at_chat",
    [
        (Fault.RESOLVE, "name", "name"),
        (Fault.REFUSED, "connection", "connection"),
        (Fault.UNREACHABLE, "connection", "connection"),
        (Fault.CONNECT_TIMEOUT, "connection", "connection"),
        (Fault.TLS, "tls", "tls"),
        (Fault.NOT_HTTP, "http", "http"),
        (Fault.PROXY, "http", "http"),
        (Fault.SILENCE, "http", "chat"),
        (Fault.SLOW, "http", "chat"),
        (Fault.OVERSIZE, "http", "chat"),
        (Fault.RESET, "http", "chat"),
        (Fault.CLOSED, "http", "chat"),
        (Fault.CUT, "http", "chat"),
        (Fault.OTHER, "http", "chat"),
        (Fault.UNSENDABLE, "key", "key"),
    ],
)
def test_the_layer_of_a_fault(fault: Fault, at_models: str, at_chat: str) -> None:
    for endpoint, layer in (("models", at_models), ("chat", at_chat)):
        path = "/models" if endpoint == "models" else "/chat/completions"
        exchange = Exchange(method="GET", url=BASE + path, fault=fault, fault_text="what was seen", latency_seconds=1)
        found = found_in(exchange, setting(endpoint))
        assert found.layer == layer
        assert found.seen
        assert found.likely
        assert found.advice


def test_every_fault_of_transport_has_a_row() -> None:
    marks = test_the_layer_of_a_fault.pytestmark  # type: ignore[attr-defined]
    assert {row[0] for row in marks[0].args[1]} == set(Fault)


# --- what kind of limit --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "exchange, kind",
    [
        (answered(429, {}, rate_limit_type="max_parallel_requests"), "parallel"),
        (answered(429, {}, rate_limit_type="requests"), "rate"),
        (answered(429, {}, rate_limit_type="tokens"), "rate"),
        # LiteLLM tells of every limit in its headers; the one that was met is named apart.
        (answered(429, {}, rate_limit_type="tokens", x_ratelimit_api_key_remaining_max_parallel_requests="5"), "rate"),
        (answered(429, openai("slow down"), x_ratelimit_api_key_limit_max_parallel_requests="5"), ""),
        (answered(429, openai("slow down"), x_ratelimit_remaining_requests="0"), "rate"),
        (answered(429, openai("slow down"), x_ratelimit_remaining_tokens="0"), "rate"),
        (answered(429, openai("slow down"), x_ratelimit_remaining_requests="17"), ""),
        (answered(503, "reset reason: overflow", x_envoy_overloaded="true"), "parallel"),
        (answered(429, "local_rate_limited"), "rate"),
        (answered(429, openai("Too many concurrent requests")), "parallel"),
        (answered(429, {"error": {"message": "您当前使用该API的并发数过高"}}), "parallel"),
        (answered(429, {"error": {"message": "请求频率过高"}}), "rate"),
        (answered(429, openai("The RPM limit has been exceeded")), "rate"),
        (answered(429, page("429 Too Many Requests"), content_type="text/html"), ""),
        (answered(503, page("503 Service Temporarily Unavailable"), content_type="text/html"), ""),
        (answered(408, b""), ""),
    ],
)
def test_what_a_refusal_says_of_its_limit(exchange: Exchange, kind: str) -> None:
    assert limit_kind(exchange) == kind


@pytest.mark.parametrize(
    "headers, words",
    [
        ({}, "without Retry-After"),
        ({"retry_after": "60"}, "Retry-After 60 s"),
        ({"retry_after": "1.5"}, "Retry-After 2 s"),
        ({"retry_after_ms": "1412"}, "Retry-After 1 s"),
        (
            {"retry_after": "Mon, 30 Nov 2020 07:00:00 GMT"},
            "Retry-After 0 s (given as the date Mon, 30 Nov 2020 07:00:00 GMT)",
        ),
        ({"retry_after": "soon"}, "without Retry-After"),
    ],
)
def test_what_an_answer_says_of_waiting(headers: dict[str, str], words: str) -> None:
    assert waiting(answered(429, b"", **headers)) == words


# --- nothing that comes may break the diagnosis --------------------------------------------------------------


ODD = [
    b"",
    b"{",
    b"[]",
    b"[[]]",
    b"[null]",
    b"null",
    b"true",
    b"0",
    b'""',
    b'"\\ud800"',
    b"\xff\xfe",
    b"\x00\x1b[2J",
    b"<",
    b"<html",
    b"<title>",
    b"<title></title>",
    b"{" * 3000,
    b"[" * 100_000,
    b'{"error":' * 900 + b"1" + b"}" * 900,
    b'{"error": []}',
    b'{"error": [[]]}',
    b'{"error": 1}',
    b'{"error": true}',
    b'{"error": {}}',
    b'{"error": {"message": null}}',
    b'{"error": {"message": {"a": 1}}}',
    b'{"error": {"code": {"a": 1}}}',
    b'{"detail": {}}',
    b'{"detail": [1]}',
    b'{"detail": [null]}',
    b'{"message": 5}',
    b'{"errors": {}}',
    b'{"base_resp": 1}',
    b'{"base_resp": {"status_code": "x"}}',
    b'{"code": [], "msg": "x"}',
    b'{"success": false}',
    b'{"data": 1, "error": "x"}',
    b'{"choices": 1, "error": "x"}',
    b"x" * 100_000,
]


@pytest.mark.parametrize("status", [200, 204, 302, 400, 401, 403, 404, 408, 418, 429, 500, 503, 599, 999])
def test_odd_bodies_break_nothing(status: int) -> None:
    for body in ODD:
        for endpoint in ("models", "chat"):
            for key in (KEY, None):
                exchange = answered(status, body, endpoint=endpoint, location="::", server="\x1b[31m", date="x")
                found = diagnose(exchange, setting(endpoint, key=key))
                assert (found is None) <= (200 <= status < 300)
                if found is not None:
                    assert found.layer in LAYERS
                    assert all(c.isprintable() for c in found.seen), found.seen
                    assert len(found.seen) < 600
                    assert found.verdict(exchange).layer == found.layer
