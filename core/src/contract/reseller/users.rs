//! Login and sub-users (parts "Login result", "Sub-user" and "Sub-user create request" of the contract).

use crate::contract::{Decimal, Json, Label, Secret};

string_enum! {
    /// Where a sub-user is in its life.
    SubUserStatus {
        /// It can be used.
        Active = "active";
        /// It was disabled.
        Disabled = "disabled";
        /// It was deleted; its data stays.
        Deleted = "deleted";
    }
}

string_enum! {
    /// What a sub-user can be set to.
    SubUserSwitch {
        /// It can be used.
        Active = "active";
        /// It can't be used.
        Disabled = "disabled";
    }
}

record! {
    /// Whose token it is.
    LoginUser {
        /// Its number.
        id: Option<i64>;
        /// Its name.
        username: Option<String>;
        /// Its balance.
        balance: Option<Decimal>;
        /// Where it is in its life.
        status: Option<SubUserStatus>;
    }
}

record! {
    /// What a login gives.
    LoginResult {
        /// The bearer token, a JWT. The service does not document how long it lasts.
        token: Secret;
        /// Whose it is.
        user: Option<LoginUser>;
    }
}

record! {
    /// A sub-user.
    SubUser {
        /// Its number.
        id: Option<i64>;
        /// Its name.
        username: Option<String>;
        /// Its email address.
        email: Option<Secret>;
        /// Its mobile number.
        phone: Option<String>;
        /// The reseller's note.
        remark: Option<String>;
        /// Where it is in its life.
        status: Option<SubUserStatus>;
        /// Its balance.
        balance: Option<Decimal>;
        /// Its balance at the first upstream supplier.
        vendora_balance: Option<Decimal>;
        /// Its balance at the second upstream supplier.
        vendorb_balance: Option<Decimal>;
        /// All that it was topped up with.
        total_recharge: Option<Decimal>;
        /// All that it spent.
        total_consumption: Option<Decimal>;
        /// Whose sub-user it is.
        agent_id: Option<i64>;
        /// When it was made; the service does not document the form.
        created_at: Option<Label>;
        /// When it was last changed; the service does not document the form.
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
    /// Who logs in. A client that was given both does it by itself.
    Login {
        /// The reseller's name.
        username: Secret => Body;
        /// Its password.
        password: Secret => Body;
    }
}

record! {
    /// Whom to make.
    CreateUser {
        /// 3 to 50 characters, which no other user has.
        username: String => Body, Length(3, 50);
        /// 6 to 50 characters.
        password: Secret => Body, Length(6, 50);
        /// Its email address.
        email: Option<Secret> => Body;
        /// Its mobile number, 11 digits.
        phone: Option<String> => Body, Phone;
        /// A note.
        remark: Option<String> => Body;
        /// What it starts with.
        balance: Option<Decimal> => Body;
    }
}

record! {
    /// The balance takes no parameters.
    GetCurrentBalance {}
}

record! {
    /// Which sub-users to list.
    ListSubUsers {
        /// Which page, from 1; the server's default is 1.
        page: Option<i64> => Query, AtLeast(1);
        /// How many a page, at most 100; the server's default is 20.
        page_size: Option<i64> as "pageSize" => Query, Between(1, 100);
        /// A part of a name, an email address or a phone number.
        search: Option<String> => Query;
        /// Only those.
        status: Option<SubUserStatus> => Query;
        /// Whether deleted ones are listed; the server's default is `false`.
        include_deleted: Option<bool> as "includeDeleted" => Query;
    }
}

record! {
    /// By how much a sub-user's balance is to change.
    AdjustSubUserBalance {
        /// Which sub-user, one of the reseller's own.
        user_id: i64 => Path;
        /// What is added; a negative amount is deducted. The balance must not fall below 0.
        amount: Decimal => Body;
        /// Why.
        remark: String => Body;
    }
}

record! {
    /// What a sub-user is to log in with: a name, a password or both. What it has at an upstream supplier stays.
    EditSubUserAccount {
        /// Which sub-user, one of the reseller's own.
        user_id: i64 => Path;
        /// 3 to 50 letters, digits, underscores and hyphens, which no other user has.
        username: Option<String> => Body, Length(3, 50), Name, Unless("password");
        /// 6 to 50 characters.
        password: Option<Secret> => Body, Length(6, 50);
    }
}

record! {
    /// Whether a sub-user can be used.
    SetSubUserStatus {
        /// Which sub-user, one of the reseller's own.
        user_id: i64 => Path;
        /// `active` or `disabled`.
        status: SubUserSwitch => Body;
    }
}

record! {
    /// Whom to delete.
    DeleteSubUser {
        /// Which sub-user, one of the reseller's own.
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
