# Printed from the table by hopline-bindgen. Do not edit: change the table.
"""The operations of the API, one method each."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from ._bases import AsyncCaller, Caller
from ._session import AsyncOpening, OpenSession, SessionReply
from ._types import *  # noqa: F403
from ._values import UNSET, Reply, Secret, Unset



class Operations(Caller):
    """One method for each operation of the API, and those that wait for a session."""

    __slots__ = ()

    def list_public_products(
        self,
        *,
        type: ProductFilter | Unset = UNSET,
        country: str | Unset = UNSET,
        in_stock: bool | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> ProductList:
        """Lists products with starting prices, without a key. The service may answer from a cache of up to 60 seconds.

        `GET /public/products`.

        Args:
            type: Which products; the server's default is `all`.
            country: Only this country.
            in_stock: Only what can be bought now; the server's default is `true`.
            limit: How many a page, 1 to 100; the server's default is 20.
            cursor: `next_cursor` of the page before.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("list_public_products", {"type": type, "country": country, "in_stock": in_stock, "limit": limit, "cursor": cursor}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, ProductList)

    def list_products(
        self,
        *,
        type: ProductFilter | Unset = UNSET,
        country: str | Unset = UNSET,
        in_stock: bool | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> ProductList:
        """Lists products with the account's own prices: the binding quote before buying.

        `GET /products`.

        Args:
            type: Which products; no default is stated.
            country: Only this country.
            in_stock: Only what can be bought now; the server's default is `true`.
            limit: How many a page, 1 to 100; the server's default is 20.
            cursor: `next_cursor` of the page before.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("list_products", {"type": type, "country": country, "in_stock": in_stock, "limit": limit, "cursor": cursor}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, ProductList)

    def request_api_key(
        self,
        *,
        email: Secret | str,
        referral_code: str | Unset = UNSET,
        client_installation_id: str | Unset = UNSET,
        intent: str | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> ApiKeyRequest:
        """Has a key sent to a mailbox. A repeat sends the same key again; the trial credit is granted once an address.

        `POST /account/request-api-key`.

        Args:
            email: The address that the key is sent to.
            referral_code: Who recommended the service.
            client_installation_id: A UUID of this installation, used only against abuse of the trial credit.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("request_api_key", {"email": email, "referral_code": referral_code, "client_installation_id": client_installation_id}, {"intent": intent, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, ApiKeyRequest)

    def register_account(
        self,
        *,
        name: str,
        contact_email: Secret | str | Unset = UNSET,
        referral_code: str | Unset = UNSET,
        intent: str | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Registration:
        """Opens an account and returns its credentials. It is never sent twice, since that could open two accounts.

        `POST /account/register`.

        Args:
            name: The account's name.
            contact_email: An address to reach its owner at.
            referral_code: Who recommended the service.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("register_account", {"name": name, "contact_email": contact_email, "referral_code": referral_code}, {"intent": intent, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Registration)

    def get_account(
        self,
        *,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> AccountInfo:
        """Reads the account that the key belongs to.

        `GET /account/info`.

        Args:
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("get_account", {}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, AccountInfo)

    def get_budget(
        self,
        *,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Reads limits, estimated spend, the pause and the next reset of the key's budget. The fields are not shown.

        `GET /account/budget`.

        Args:
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("get_budget", {}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    def update_budget(
        self,
        *,
        key_limit_usd: Decimal | float | None | Unset = UNSET,
        daily_limit_usd: Decimal | float | None | Unset = UNSET,
        pause_on_exceed: bool | Unset = UNSET,
        alert_thresholds: Sequence[int] | Unset = UNSET,
        paused: bool | Unset = UNSET,
        intent: str | None = None,
        idempotency_key: str | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Changes the key's budget: the guard that holds across processes. The fields of the answer are not shown.

        `PUT /account/budget`.

        Args:
            key_limit_usd: USD that the key may spend in all, at least 0.
            daily_limit_usd: USD that the key may spend in a UTC day, at least 0.
            pause_on_exceed: Deprecated; the contract contradicts itself on whether it pauses the key. The server's default is `false`.
            alert_thresholds: Percentages of a limit at which an alert is raised, 1 to 100 each.
            paused: Whether purchases with this key are stopped.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            idempotency_key: A key of your own. It counts as sent before and is never replaced.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("update_budget", {"key_limit_usd": key_limit_usd, "daily_limit_usd": daily_limit_usd, "pause_on_exceed": pause_on_exceed, "alert_thresholds": alert_thresholds, "paused": paused}, {"intent": intent, "idempotency_key": idempotency_key, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    def get_usage_alerts(
        self,
        *,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Reads which thresholds were crossed, and whether the key is paused. The fields are not shown.

        `GET /account/usage-alerts`.

        Args:
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("get_usage_alerts", {}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    def create_session(
        self,
        *,
        session_type: SessionType,
        product_no: str,
        provisioning_mode: ProvisioningMode | Unset = UNSET,
        resource_id: str | Unset = UNSET,
        quantity: Decimal | float | Unset = UNSET,
        duration: int | Unset = UNSET,
        protocol: Protocol | Unset = UNSET,
        country_code: str | Unset = UNSET,
        city_code: str | Unset = UNSET,
        project_id: str | Unset = UNSET,
        rotation_mode: RotationMode | Unset = UNSET,
        rotation_interval_sec: int | Unset = UNSET,
        intent: str | None = None,
        idempotency_key: str | None = None,
        retry_paid: bool | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Session:
        """Buys a session. The answer means accepted, not usable: it is `creating`, without credentials, until a read says
        otherwise.

        `POST /sessions`; it can charge money.

        Args:
            session_type: `dynamic` or `static`.
            product_no: From a product list.
            provisioning_mode: `purchase` is the server's default; `existing` uses a resource of the account and charges nothing.
            resource_id: An existing static order number; without it, a usable static resource of the account is chosen.
            quantity: GB (dynamic, fractions allowed) or addresses (static, whole); the server's default is 1.
            duration: For how long, at least 1; the unit is not shown.
            protocol: What the proxy is to speak; the server's default is `socks5`.
            country_code: Country of the exit.
            city_code: City of the exit.
            project_id: Project code, which some shared static products need.
            rotation_mode: When the exit address is to change.
            rotation_interval_sec: Seconds between two changes of the address.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            idempotency_key: A key of your own. It counts as sent before and is never replaced.
            retry_paid: Whether to buy again with a new key when the service failed. It may have sold all the same.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("create_session", {"session_type": session_type, "product_no": product_no, "provisioning_mode": provisioning_mode, "resource_id": resource_id, "quantity": quantity, "duration": duration, "protocol": protocol, "country_code": country_code, "city_code": city_code, "project_id": project_id, "rotation_mode": rotation_mode, "rotation_interval_sec": rotation_interval_sec}, {"intent": intent, "idempotency_key": idempotency_key, "retry_paid": retry_paid, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Session)

    def get_session(
        self,
        *,
        session_id: str,
        include_credentials: bool | Unset = UNSET,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Session:
        """Reads a session.

        `GET /sessions/{session_id}`.

        Args:
            session_id: Its id.
            include_credentials: Whether an active session's username and password are wanted; the server's default is `false`.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("get_session", {"session_id": session_id, "include_credentials": include_credentials}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Session)

    def terminate_session(
        self,
        *,
        session_id: str,
        intent: str | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Ends a session and releases its resource. A static resource is not refunded.

        `DELETE /sessions/{session_id}`.

        Args:
            session_id: Its id.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("terminate_session", {"session_id": session_id}, {"intent": intent, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    def rotate_session(
        self,
        *,
        session_id: str,
        include_credentials: bool | Unset = UNSET,
        reason: RotateReason | Unset = UNSET,
        intent: str | None = None,
        idempotency_key: str | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Session:
        """Gives a dynamic session another exit address. The session must be `active`.

        `POST /sessions/{session_id}/rotate`.

        Args:
            session_id: Its id.
            include_credentials: Whether the username and password are wanted in the answer; the server's default is `false`.
            reason: Why.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            idempotency_key: A key of your own. It counts as sent before and is never replaced.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("rotate_session", {"session_id": session_id, "include_credentials": include_credentials, "reason": reason}, {"intent": intent, "idempotency_key": idempotency_key, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Session)

    def renew_session(
        self,
        *,
        session_id: str,
        duration: int,
        intent: str | None = None,
        idempotency_key: str | None = None,
        retry_paid: bool | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Lengthens a static session. It must be `active` or `expired`. The body of the answer is not shown.

        `POST /sessions/{session_id}/renew`; it can charge money.

        Args:
            session_id: Its id.
            duration: At least 1; the unit is not shown.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            idempotency_key: A key of your own. It counts as sent before and is never replaced.
            retry_paid: Whether to buy again with a new key when the service failed. It may have sold all the same.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("renew_session", {"session_id": session_id, "duration": duration}, {"intent": intent, "idempotency_key": idempotency_key, "retry_paid": retry_paid, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    def report_session_event(
        self,
        *,
        session_id: str,
        event: Mapping[str, Any],
        intent: str | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Reports what was seen through a session. It is never sent twice, since that would count twice. The answer is not
        shown.

        `POST /sessions/{session_id}/report-event`.

        Args:
            session_id: Its id.
            event: A JSON object; its members are not shown.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("report_session_event", {"session_id": session_id, "event": event}, {"intent": intent, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    def get_session_health(
        self,
        *,
        session_id: str,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Reads a session's health, and whether the service recommends a rotation. The fields are not shown.

        `GET /sessions/{session_id}/health`.

        Args:
            session_id: Its id.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("get_session_health", {"session_id": session_id}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    def get_balance(
        self,
        *,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Reads the account's balance in USD. The fields of the answer are not shown.

        `GET /billing/balance`.

        Args:
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("get_balance", {}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    def get_pricing(
        self,
        *,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Reads the account's prices. The fields of the answer are not shown.

        `GET /billing/pricing`.

        Args:
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("get_pricing", {}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    def create_recharge(
        self,
        *,
        amount: Decimal | float | Unset = UNSET,
        amount_usd: Decimal | float | Unset = UNSET,
        currency: RechargeCurrency | Unset = UNSET,
        intent: str | None = None,
        idempotency_key: str | None = None,
        retry_paid: bool | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> RechargeOrder:
        """Orders a top-up of at least 10 USD, to be paid in USDT.

        `POST /billing/recharge`; it can charge money.

        Args:
            amount: The amount, at least 10.
            amount_usd: The amount in USD, at least 10.
            currency: `USDT` is the server's default.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            idempotency_key: A key of your own. It counts as sent before and is never replaced.
            retry_paid: Whether to buy again with a new key when the service failed. It may have sold all the same.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("create_recharge", {"amount": amount, "amount_usd": amount_usd, "currency": currency}, {"intent": intent, "idempotency_key": idempotency_key, "retry_paid": retry_paid, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, RechargeOrder)

    def list_transactions(
        self,
        *,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Reads the account's transactions. The fields of the answer are not shown.

        `GET /billing/transactions`.

        Args:
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return self._call("list_transactions", {}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    def open_session(
        self,
        *,
        session_type: SessionType,
        product_no: str,
        provisioning_mode: ProvisioningMode | Unset = UNSET,
        resource_id: str | Unset = UNSET,
        quantity: Decimal | float | Unset = UNSET,
        duration: int | Unset = UNSET,
        protocol: Protocol | Unset = UNSET,
        country_code: str | Unset = UNSET,
        city_code: str | Unset = UNSET,
        project_id: str | Unset = UNSET,
        rotation_mode: RotationMode | Unset = UNSET,
        rotation_interval_sec: int | Unset = UNSET,
        intent: str | None = None,
        idempotency_key: str | None = None,
        retry_paid: bool | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
        credentials: bool | None = None,
        deadline: float | None = None,
        ends: Sequence[str] | None = None,
        keep: bool = False,
    ) -> OpenSession:
        """Buys a session and waits until it is usable, over, or the deadline has come.

        Leaving a `with` block of it ends a dynamic session, unless `keep` is true.

        Args:
            session_type: `dynamic` or `static`.
            product_no: From a product list.
            provisioning_mode: `purchase` is the server's default; `existing` uses a resource of the account and charges nothing.
            resource_id: An existing static order number; without it, a usable static resource of the account is chosen.
            quantity: GB (dynamic, fractions allowed) or addresses (static, whole); the server's default is 1.
            duration: For how long, at least 1; the unit is not shown.
            protocol: What the proxy is to speak; the server's default is `socks5`.
            country_code: Country of the exit.
            city_code: City of the exit.
            project_id: Project code, which some shared static products need.
            rotation_mode: When the exit address is to change.
            rotation_interval_sec: Seconds between two changes of the address.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            idempotency_key: A key of your own. It counts as sent before and is never replaced.
            retry_paid: Whether to buy again with a new key when the service failed. It may have sold all the same.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
            credentials: Whether the username and password are wanted once the session is active.
            deadline: Seconds after which waiting ends with a handle; 5 minutes where it is left out.
            ends: Further statuses that end it.
            keep: Whether the session lives on when the `with` block is left. A static one always does.
        """
        return self._open({"session_type": session_type, "product_no": product_no, "provisioning_mode": provisioning_mode, "resource_id": resource_id, "quantity": quantity, "duration": duration, "protocol": protocol, "country_code": country_code, "city_code": city_code, "project_id": project_id, "rotation_mode": rotation_mode, "rotation_interval_sec": rotation_interval_sec}, {"intent": intent, "idempotency_key": idempotency_key, "retry_paid": retry_paid, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers, "credentials": credentials, "deadline": deadline, "ends": ends}, keep)

    def wait_session(
        self,
        *,
        session_id: str,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
        credentials: bool | None = None,
        deadline: float | None = None,
        ends: Sequence[str] | None = None,
    ) -> SessionReply:
        """Waits for a session that is known by its id, as `open_session` does after its purchase.

        Args:
            session_id: Its id.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
            credentials: Whether the username and password are wanted once the session is active.
            deadline: Seconds after which waiting ends with a handle; 5 minutes where it is left out.
            ends: Further statuses that end it.
        """
        return self._wait({"session_id": session_id}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers, "credentials": credentials, "deadline": deadline, "ends": ends})


class AsyncOperations(AsyncCaller):
    """One method for each operation of the API, and those that wait for a session."""

    __slots__ = ()

    async def list_public_products(
        self,
        *,
        type: ProductFilter | Unset = UNSET,
        country: str | Unset = UNSET,
        in_stock: bool | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> ProductList:
        """Lists products with starting prices, without a key. The service may answer from a cache of up to 60 seconds.

        `GET /public/products`.

        Args:
            type: Which products; the server's default is `all`.
            country: Only this country.
            in_stock: Only what can be bought now; the server's default is `true`.
            limit: How many a page, 1 to 100; the server's default is 20.
            cursor: `next_cursor` of the page before.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("list_public_products", {"type": type, "country": country, "in_stock": in_stock, "limit": limit, "cursor": cursor}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, ProductList)

    async def list_products(
        self,
        *,
        type: ProductFilter | Unset = UNSET,
        country: str | Unset = UNSET,
        in_stock: bool | Unset = UNSET,
        limit: int | Unset = UNSET,
        cursor: str | Unset = UNSET,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> ProductList:
        """Lists products with the account's own prices: the binding quote before buying.

        `GET /products`.

        Args:
            type: Which products; no default is stated.
            country: Only this country.
            in_stock: Only what can be bought now; the server's default is `true`.
            limit: How many a page, 1 to 100; the server's default is 20.
            cursor: `next_cursor` of the page before.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("list_products", {"type": type, "country": country, "in_stock": in_stock, "limit": limit, "cursor": cursor}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, ProductList)

    async def request_api_key(
        self,
        *,
        email: Secret | str,
        referral_code: str | Unset = UNSET,
        client_installation_id: str | Unset = UNSET,
        intent: str | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> ApiKeyRequest:
        """Has a key sent to a mailbox. A repeat sends the same key again; the trial credit is granted once an address.

        `POST /account/request-api-key`.

        Args:
            email: The address that the key is sent to.
            referral_code: Who recommended the service.
            client_installation_id: A UUID of this installation, used only against abuse of the trial credit.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("request_api_key", {"email": email, "referral_code": referral_code, "client_installation_id": client_installation_id}, {"intent": intent, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, ApiKeyRequest)

    async def register_account(
        self,
        *,
        name: str,
        contact_email: Secret | str | Unset = UNSET,
        referral_code: str | Unset = UNSET,
        intent: str | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Registration:
        """Opens an account and returns its credentials. It is never sent twice, since that could open two accounts.

        `POST /account/register`.

        Args:
            name: The account's name.
            contact_email: An address to reach its owner at.
            referral_code: Who recommended the service.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("register_account", {"name": name, "contact_email": contact_email, "referral_code": referral_code}, {"intent": intent, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Registration)

    async def get_account(
        self,
        *,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> AccountInfo:
        """Reads the account that the key belongs to.

        `GET /account/info`.

        Args:
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("get_account", {}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, AccountInfo)

    async def get_budget(
        self,
        *,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Reads limits, estimated spend, the pause and the next reset of the key's budget. The fields are not shown.

        `GET /account/budget`.

        Args:
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("get_budget", {}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    async def update_budget(
        self,
        *,
        key_limit_usd: Decimal | float | None | Unset = UNSET,
        daily_limit_usd: Decimal | float | None | Unset = UNSET,
        pause_on_exceed: bool | Unset = UNSET,
        alert_thresholds: Sequence[int] | Unset = UNSET,
        paused: bool | Unset = UNSET,
        intent: str | None = None,
        idempotency_key: str | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Changes the key's budget: the guard that holds across processes. The fields of the answer are not shown.

        `PUT /account/budget`.

        Args:
            key_limit_usd: USD that the key may spend in all, at least 0.
            daily_limit_usd: USD that the key may spend in a UTC day, at least 0.
            pause_on_exceed: Deprecated; the contract contradicts itself on whether it pauses the key. The server's default is `false`.
            alert_thresholds: Percentages of a limit at which an alert is raised, 1 to 100 each.
            paused: Whether purchases with this key are stopped.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            idempotency_key: A key of your own. It counts as sent before and is never replaced.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("update_budget", {"key_limit_usd": key_limit_usd, "daily_limit_usd": daily_limit_usd, "pause_on_exceed": pause_on_exceed, "alert_thresholds": alert_thresholds, "paused": paused}, {"intent": intent, "idempotency_key": idempotency_key, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    async def get_usage_alerts(
        self,
        *,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Reads which thresholds were crossed, and whether the key is paused. The fields are not shown.

        `GET /account/usage-alerts`.

        Args:
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("get_usage_alerts", {}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    async def create_session(
        self,
        *,
        session_type: SessionType,
        product_no: str,
        provisioning_mode: ProvisioningMode | Unset = UNSET,
        resource_id: str | Unset = UNSET,
        quantity: Decimal | float | Unset = UNSET,
        duration: int | Unset = UNSET,
        protocol: Protocol | Unset = UNSET,
        country_code: str | Unset = UNSET,
        city_code: str | Unset = UNSET,
        project_id: str | Unset = UNSET,
        rotation_mode: RotationMode | Unset = UNSET,
        rotation_interval_sec: int | Unset = UNSET,
        intent: str | None = None,
        idempotency_key: str | None = None,
        retry_paid: bool | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Session:
        """Buys a session. The answer means accepted, not usable: it is `creating`, without credentials, until a read says
        otherwise.

        `POST /sessions`; it can charge money.

        Args:
            session_type: `dynamic` or `static`.
            product_no: From a product list.
            provisioning_mode: `purchase` is the server's default; `existing` uses a resource of the account and charges nothing.
            resource_id: An existing static order number; without it, a usable static resource of the account is chosen.
            quantity: GB (dynamic, fractions allowed) or addresses (static, whole); the server's default is 1.
            duration: For how long, at least 1; the unit is not shown.
            protocol: What the proxy is to speak; the server's default is `socks5`.
            country_code: Country of the exit.
            city_code: City of the exit.
            project_id: Project code, which some shared static products need.
            rotation_mode: When the exit address is to change.
            rotation_interval_sec: Seconds between two changes of the address.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            idempotency_key: A key of your own. It counts as sent before and is never replaced.
            retry_paid: Whether to buy again with a new key when the service failed. It may have sold all the same.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("create_session", {"session_type": session_type, "product_no": product_no, "provisioning_mode": provisioning_mode, "resource_id": resource_id, "quantity": quantity, "duration": duration, "protocol": protocol, "country_code": country_code, "city_code": city_code, "project_id": project_id, "rotation_mode": rotation_mode, "rotation_interval_sec": rotation_interval_sec}, {"intent": intent, "idempotency_key": idempotency_key, "retry_paid": retry_paid, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Session)

    async def get_session(
        self,
        *,
        session_id: str,
        include_credentials: bool | Unset = UNSET,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Session:
        """Reads a session.

        `GET /sessions/{session_id}`.

        Args:
            session_id: Its id.
            include_credentials: Whether an active session's username and password are wanted; the server's default is `false`.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("get_session", {"session_id": session_id, "include_credentials": include_credentials}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Session)

    async def terminate_session(
        self,
        *,
        session_id: str,
        intent: str | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Ends a session and releases its resource. A static resource is not refunded.

        `DELETE /sessions/{session_id}`.

        Args:
            session_id: Its id.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("terminate_session", {"session_id": session_id}, {"intent": intent, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    async def rotate_session(
        self,
        *,
        session_id: str,
        include_credentials: bool | Unset = UNSET,
        reason: RotateReason | Unset = UNSET,
        intent: str | None = None,
        idempotency_key: str | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Session:
        """Gives a dynamic session another exit address. The session must be `active`.

        `POST /sessions/{session_id}/rotate`.

        Args:
            session_id: Its id.
            include_credentials: Whether the username and password are wanted in the answer; the server's default is `false`.
            reason: Why.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            idempotency_key: A key of your own. It counts as sent before and is never replaced.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("rotate_session", {"session_id": session_id, "include_credentials": include_credentials, "reason": reason}, {"intent": intent, "idempotency_key": idempotency_key, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Session)

    async def renew_session(
        self,
        *,
        session_id: str,
        duration: int,
        intent: str | None = None,
        idempotency_key: str | None = None,
        retry_paid: bool | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Lengthens a static session. It must be `active` or `expired`. The body of the answer is not shown.

        `POST /sessions/{session_id}/renew`; it can charge money.

        Args:
            session_id: Its id.
            duration: At least 1; the unit is not shown.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            idempotency_key: A key of your own. It counts as sent before and is never replaced.
            retry_paid: Whether to buy again with a new key when the service failed. It may have sold all the same.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("renew_session", {"session_id": session_id, "duration": duration}, {"intent": intent, "idempotency_key": idempotency_key, "retry_paid": retry_paid, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    async def report_session_event(
        self,
        *,
        session_id: str,
        event: Mapping[str, Any],
        intent: str | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Reports what was seen through a session. It is never sent twice, since that would count twice. The answer is not
        shown.

        `POST /sessions/{session_id}/report-event`.

        Args:
            session_id: Its id.
            event: A JSON object; its members are not shown.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("report_session_event", {"session_id": session_id, "event": event}, {"intent": intent, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    async def get_session_health(
        self,
        *,
        session_id: str,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Reads a session's health, and whether the service recommends a rotation. The fields are not shown.

        `GET /sessions/{session_id}/health`.

        Args:
            session_id: Its id.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("get_session_health", {"session_id": session_id}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    async def get_balance(
        self,
        *,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Reads the account's balance in USD. The fields of the answer are not shown.

        `GET /billing/balance`.

        Args:
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("get_balance", {}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    async def get_pricing(
        self,
        *,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Reads the account's prices. The fields of the answer are not shown.

        `GET /billing/pricing`.

        Args:
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("get_pricing", {}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    async def create_recharge(
        self,
        *,
        amount: Decimal | float | Unset = UNSET,
        amount_usd: Decimal | float | Unset = UNSET,
        currency: RechargeCurrency | Unset = UNSET,
        intent: str | None = None,
        idempotency_key: str | None = None,
        retry_paid: bool | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> RechargeOrder:
        """Orders a top-up of at least 10 USD, to be paid in USDT.

        `POST /billing/recharge`; it can charge money.

        Args:
            amount: The amount, at least 10.
            amount_usd: The amount in USD, at least 10.
            currency: `USDT` is the server's default.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            idempotency_key: A key of your own. It counts as sent before and is never replaced.
            retry_paid: Whether to buy again with a new key when the service failed. It may have sold all the same.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("create_recharge", {"amount": amount, "amount_usd": amount_usd, "currency": currency}, {"intent": intent, "idempotency_key": idempotency_key, "retry_paid": retry_paid, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, RechargeOrder)

    async def list_transactions(
        self,
        *,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> Reply:
        """Reads the account's transactions. The fields of the answer are not shown.

        `GET /billing/transactions`.

        Args:
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
        """
        return await self._call("list_transactions", {}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers}, Reply)

    def open_session(
        self,
        *,
        session_type: SessionType,
        product_no: str,
        provisioning_mode: ProvisioningMode | Unset = UNSET,
        resource_id: str | Unset = UNSET,
        quantity: Decimal | float | Unset = UNSET,
        duration: int | Unset = UNSET,
        protocol: Protocol | Unset = UNSET,
        country_code: str | Unset = UNSET,
        city_code: str | Unset = UNSET,
        project_id: str | Unset = UNSET,
        rotation_mode: RotationMode | Unset = UNSET,
        rotation_interval_sec: int | Unset = UNSET,
        intent: str | None = None,
        idempotency_key: str | None = None,
        retry_paid: bool | None = None,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
        credentials: bool | None = None,
        deadline: float | None = None,
        ends: Sequence[str] | None = None,
        keep: bool = False,
    ) -> AsyncOpening:
        """Buys a session and waits until it is usable, over, or the deadline has come.

        Leaving a `with` block of it ends a dynamic session, unless `keep` is true.

        Args:
            session_type: `dynamic` or `static`.
            product_no: From a product list.
            provisioning_mode: `purchase` is the server's default; `existing` uses a resource of the account and charges nothing.
            resource_id: An existing static order number; without it, a usable static resource of the account is chosen.
            quantity: GB (dynamic, fractions allowed) or addresses (static, whole); the server's default is 1.
            duration: For how long, at least 1; the unit is not shown.
            protocol: What the proxy is to speak; the server's default is `socks5`.
            country_code: Country of the exit.
            city_code: City of the exit.
            project_id: Project code, which some shared static products need.
            rotation_mode: When the exit address is to change.
            rotation_interval_sec: Seconds between two changes of the address.
            intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
            idempotency_key: A key of your own. It counts as sent before and is never replaced.
            retry_paid: Whether to buy again with a new key when the service failed. It may have sold all the same.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
            credentials: Whether the username and password are wanted once the session is active.
            deadline: Seconds after which waiting ends with a handle; 5 minutes where it is left out.
            ends: Further statuses that end it.
            keep: Whether the session lives on when the `with` block is left. A static one always does.
        """
        return self._open({"session_type": session_type, "product_no": product_no, "provisioning_mode": provisioning_mode, "resource_id": resource_id, "quantity": quantity, "duration": duration, "protocol": protocol, "country_code": country_code, "city_code": city_code, "project_id": project_id, "rotation_mode": rotation_mode, "rotation_interval_sec": rotation_interval_sec}, {"intent": intent, "idempotency_key": idempotency_key, "retry_paid": retry_paid, "attempts": attempts, "window": window, "timeout": timeout, "headers": headers, "credentials": credentials, "deadline": deadline, "ends": ends}, keep)

    async def wait_session(
        self,
        *,
        session_id: str,
        attempts: int | None = None,
        window: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str | Secret] | None = None,
        credentials: bool | None = None,
        deadline: float | None = None,
        ends: Sequence[str] | None = None,
    ) -> SessionReply:
        """Waits for a session that is known by its id, as `open_session` does after its purchase.

        Args:
            session_id: Its id.
            attempts: How often it is sent at most, the first time included.
            window: Seconds from the first send within which another may be made.
            timeout: Seconds that one attempt may take.
            headers: Further headers of the request. They are not kept in records.
            credentials: Whether the username and password are wanted once the session is active.
            deadline: Seconds after which waiting ends with a handle; 5 minutes where it is left out.
            ends: Further statuses that end it.
        """
        return await self._wait({"session_id": session_id}, {"attempts": attempts, "window": window, "timeout": timeout, "headers": headers, "credentials": credentials, "deadline": deadline, "ends": ends})
