//! Login and sub-users (parts "Login result", "Sub-user" and "Sub-user create request" of the contract).

use crate::contract::{Decimal, Json, Label, Secret};

string_enum! {
    /// The status of a sub-user.
    SubUserStatus {
        /// The sub-user can log in.
        Active = "active";
        /// The sub-user was disabled.
        Disabled = "disabled";
        /// The sub-user was deleted; its data stays.
        Deleted = "deleted";
    }
}

string_enum! {
    /// The status to set for a sub-user.
    SubUserSwitch {
        /// The sub-user can log in.
        Active = "active";
        /// The sub-user can't log in.
        Disabled = "disabled";
    }
}

record! {
    /// The user of a token.
    LoginUser {
        /// The user's number.
        id: Option<i64>;
        /// The user's name.
        username: Option<String>;
        /// The user's balance.
        balance: Option<Decimal>;
        /// The status of the user.
        status: Option<SubUserStatus>;
    }
}

record! {
    /// The result of a login.
    LoginResult {
        /// The bearer token, a JWT. The service does not document how long it lasts.
        token: Secret;
        /// The user of the token.
        user: Option<LoginUser>;
    }
}

record! {
    /// A sub-user.
    SubUser {
        /// The sub-user's number.
        id: Option<i64>;
        /// The sub-user's name.
        username: Option<String>;
        /// The email address.
        email: Option<Secret>;
        /// The mobile number.
        phone: Option<String>;
        /// The reseller's note.
        remark: Option<String>;
        /// The status of the sub-user.
        status: Option<SubUserStatus>;
        /// The balance.
        balance: Option<Decimal>;
        /// The balance at the first upstream supplier.
        vendora_balance: Option<Decimal>;
        /// The balance at the second upstream supplier.
        vendorb_balance: Option<Decimal>;
        /// The sum of all top-ups.
        total_recharge: Option<Decimal>;
        /// The sum of all spending.
        total_consumption: Option<Decimal>;
        /// The reseller of the sub-user.
        agent_id: Option<i64>;
        /// The time of creation; the service does not document the form.
        created_at: Option<Label>;
        /// The time of the last change; the service does not document the form.
        updated_at: Option<Label>;
    }
}

record! {
    /// A page of sub-users.
    SubUserList {
        /// The sub-users of this page.
        items: Vec<SubUser> as "items" | "list";
    }
}

record! {
    /// The credentials of a login. A client that was given both logs in by itself.
    Login {
        /// The reseller's name.
        username: Secret => Body;
        /// The reseller's password.
        password: Secret => Body;
    }
}

record! {
    /// The sub-user to create.
    CreateUser {
        /// 3 to 50 characters, which no other user has.
        username: String => Body, Length(3, 50);
        /// 6 to 50 characters.
        password: Secret => Body, Length(6, 50);
        /// The email address.
        email: Option<Secret> => Body;
        /// The mobile number, 11 digits.
        phone: Option<String> => Body, Phone;
        /// A note.
        remark: Option<String> => Body;
        /// The initial balance.
        balance: Option<Decimal> => Body;
    }
}

record! {
    /// The balance takes no parameters.
    GetCurrentBalance {}
}

record! {
    /// The sub-users to list.
    ListSubUsers {
        /// The page, from 1; the server's default is 1.
        page: Option<i64> => Query, AtLeast(1);
        /// Sub-users on a page, at most 100; the server's default is 20.
        page_size: Option<i64> as "pageSize" => Query, Between(1, 100);
        /// A part of a name, an email address or a phone number.
        search: Option<String> => Query;
        /// Only sub-users with this status.
        status: Option<SubUserStatus> => Query;
        /// Include deleted sub-users; the server's default is `false`.
        include_deleted: Option<bool> as "includeDeleted" => Query;
    }
}

record! {
    /// The change of a sub-user's balance.
    AdjustSubUserBalance {
        /// The sub-user, one of the reseller's own.
        user_id: i64 => Path;
        /// The amount to add; a negative amount is deducted. The balance must not fall below 0.
        amount: Decimal => Body;
        /// The reason.
        remark: String => Body;
    }
}

record! {
    /// The new credentials of a sub-user: a name, a password or both. Its accounts at upstream suppliers stay.
    EditSubUserAccount {
        /// The sub-user, one of the reseller's own.
        user_id: i64 => Path;
        /// 3 to 50 letters, digits, underscores and hyphens, which no other user has.
        username: Option<String> => Body, Length(3, 50), Name, Unless("password");
        /// 6 to 50 characters.
        password: Option<Secret> => Body, Length(6, 50);
    }
}

record! {
    /// The new status of a sub-user.
    SetSubUserStatus {
        /// The sub-user, one of the reseller's own.
        user_id: i64 => Path;
        /// `active` or `disabled`.
        status: SubUserSwitch => Body;
    }
}

record! {
    /// The sub-user to delete.
    DeleteSubUser {
        /// The sub-user, one of the reseller's own.
        user_id: i64 => Path;
    }
}

endpoints! { Reseller;
    /// Logs in. The client uses the token from then on.
    login: Post "/auth/login", Public, Idempotent, Free, Login => LoginResult;
    /// Makes a sub-user.
    create_user: Post "/open/app/user/v2", Bearer, AtMostOnce, Paid, CreateUser => SubUser;
    /// Reads the reseller's own balance. The service does not document the fields of the answer; see `raw`.
    get_current_balance: Get "/open/app/user/balance/current", Bearer, Safe, Free, GetCurrentBalance => Json;
    /// Lists the reseller's own sub-users.
    list_sub_users: Get "/open/app/agent/sub-users", Bearer, Safe, Free, ListSubUsers => SubUserList;
    /// Adds to a sub-user's balance or deducts from it. The service does not document the fields of the answer; see `raw`.
    adjust_sub_user_balance: Post "/open/app/agent/sub-users/{user_id}/balance", Bearer, AtMostOnce, Paid, AdjustSubUserBalance => Json;
    /// Changes what a sub-user logs in with. The service does not document the fields of the answer; see `raw`.
    edit_sub_user_account: Patch "/open/app/agent/sub-users/{user_id}/account", Bearer, AtMostOnce, Free, EditSubUserAccount => Json;
    /// Enables or disables a sub-user. The service does not document the fields of the answer; see `raw`.
    set_sub_user_status: Patch "/open/app/agent/sub-users/{user_id}/status", Bearer, AtMostOnce, Free, SetSubUserStatus => Json;
    /// Deletes a sub-user; its data stays. The service does not document the fields of the answer; see `raw`.
    delete_sub_user: Delete "/open/app/agent/sub-users/{user_id}", Bearer, AtMostOnce, Free, DeleteSubUser => Json;
}
