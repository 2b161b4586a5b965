-- The store of Hopline in PostgreSQL 13 or later: `hopline store init --store postgresql://…` runs this file, and `--print` prints it.
-- A second run only adds. The role that runs this file owns the tables. Workers call the functions, and need no right to the tables.
begin;
set local client_min_messages = warning;
create schema if not exists "hopline";
set local search_path = "hopline", pg_temp;

create table if not exists format (
    is_one boolean primary key default true check (is_one),
    version int not null,
    -- The oldest version of the client that may use it.
    works_from int not null,
    swept_at timestamptz not null default now()
);

do $$
begin
    if (select version from format) > 1 then
        raise exception 'the schema is of a newer version of Hopline' using errcode = 'HL004';
    end if;
end $$;

-- The clients. One lives until `until` unless it renews; `-infinity` means that another client has a name of its own, or that it has closed.
create table if not exists owners (
    id uuid primary key,
    until timestamptz not null,
    ttl interval not null,
    -- The number and the answer of the last call, so that a repeat does nothing new, and a call that comes late is refused.
    last_call bigint not null default 0,
    last_answer text,
    last_seen timestamptz not null default now()
) with (fillfactor = 50);

create table if not exists names (
    name text collate "C" primary key,
    data bytea,
    owner uuid,
    keep_until timestamptz
) with (fillfactor = 80);
create index if not exists names_owner on names (owner) where owner is not null;
create index if not exists names_open on names (name) where keep_until is null;
create index if not exists names_keep_until on names (keep_until) where keep_until is not null;

-- What was spent. A row of the day -1 is what all who spend in a space wait for.
create table if not exists days (space text collate "C", day int, sum numeric not null, primary key (space, day));
create table if not exists entries (
    space text collate "C", day int, entry text collate "C", amount numeric not null, primary key (space, day, entry)
);

-- Refuses a call that comes later than its caller waits for it, and makes its commit durable.
create or replace function check_time(sent timestamptz, within interval) returns void language plpgsql as $$
begin
    if clock_timestamp() not between sent - within and sent + within then
        raise exception 'the call came too late, or the clock of the server was set' using errcode = 'HL001';
    end if;
    if current_setting('synchronous_commit') in ('off', 'local') then
        perform set_config('synchronous_commit', 'on', true);
    end if;
end $$;

-- Begins a call, alone among all calls of its client. `seen` is the last one whose answer the client has: it must be here.
create or replace function begin_call(
    me uuid, call bigint, seen bigint, sent timestamptz, within interval, enter interval,
    out alive boolean, out is_repeat boolean, out answer text
) language plpgsql as $$
declare
    found_owner owners;
begin
    perform check_time(sent, within);
    select * into found_owner from owners where id = me for update;
    if not found and seen = 0 then
        insert into owners (id, until, ttl) values (me, now() + enter, enter) on conflict do nothing;
        select * into found_owner from owners where id = me for update;
    end if;
    if found_owner.id is null or found_owner.last_call < seen then
        raise exception 'the database has lost what it had confirmed' using errcode = 'HL003';
    end if;
    if found_owner.last_call > call then
        raise exception 'a later call of this client was done before' using errcode = 'HL002';
    end if;
    alive := found_owner.until > now();
    is_repeat := found_owner.last_call = call;
    answer := found_owner.last_answer;
end $$;

-- A sign of life lasts for `ttl`; never shorter than an earlier one, unless the clock of the server was set back since.
create or replace function life(until timestamptz, ttl interval) returns timestamptz language sql as
$$ select case when until > now() + 2 * ttl then now() + ttl else greatest(until, now() + ttl) end $$;

create or replace function end_call(me uuid, call bigint, sent timestamptz, within interval, answer text) returns void language plpgsql as $$
begin
    update owners set last_call = call, last_answer = answer, last_seen = now(), until = case when until > now() then life(until, ttl) else until end
        where id = me;
    perform check_time(sent, within);
end $$;

create or replace function is_living(who uuid) returns boolean language sql stable as
$$ select exists (select from owners where id = who and until > now()) $$;

-- Takes a name that no other living client owns. Unless it is patient, a name that somebody is at work on is somebody's.
create or replace function take(me uuid, wanted text, is_patient boolean, at timestamptz, out taken boolean, out kept bytea) language plpgsql as $$
declare
    n names;
begin
    taken := false;
    if is_patient then
        select * into n from names where name = wanted for update;
    else
        select * into n from names where name = wanted for update skip locked;
    end if;
    if not found then
        insert into names (name, owner) values (wanted, me) on conflict do nothing;
        taken := found;
        return;
    end if;
    if n.owner is distinct from me then
        if n.owner is not null then
            -- It must not come back by a renewal that is under way.
            if is_patient then
                perform from owners where id = n.owner for update;
            else
                perform from owners where id = n.owner for update skip locked;
                if not found and exists (select from owners where id = n.owner) then
                    return;
                end if;
            end if;
            if is_living(n.owner) then
                return;
            end if;
            update owners set until = '-infinity' where id = n.owner and until > '-infinity';
        end if;
        if n.keep_until <= at then
            n.data := null;
            n.keep_until := null;
        end if;
        update names set owner = me, data = n.data, keep_until = n.keep_until where name = wanted;
    end if;
    taken := true;
    kept := n.data;
end $$;

-- Claims names. The first row has no name: it says whether the client lives, and has what the owner of one of the names put last.
create or replace function claim(
    me uuid, call bigint, seen bigint, sent timestamptz, within interval, enter interval, wanted text[], most int, at timestamptz
) returns table (alive boolean, got text, kept text) language plpgsql security definer set search_path from current as $$
declare
    way text;
    candidate text;
    t record;
    number int := 0;
begin
    select b.alive into alive from begin_call(me, call, seen, sent, within, enter) b;
    at := coalesce(at, now());
    if alive then
        foreach way in array array['at once', 'patient'] loop
            for candidate in
                select w.name from unnest(wanted) w (name) left join names n on n.name = w.name
                    where n.owner is null or n.owner = me or not is_living(n.owner)
                    order by n.owner = me desc nulls last, n.data is not null and (n.keep_until is null or n.keep_until > at) desc, w.name
            loop
                exit when number >= most;
                select * into t from take(me, candidate, way = 'patient', at);
                if t.taken then
                    number := number + 1;
                    return query select true, candidate, encode(t.kept, 'hex');
                end if;
            end loop;
            exit when number > 0;
        end loop;
        if number = 0 then
            -- Owners from before the clock was set back would live on for that time.
            update owners o set until = now() + ttl from (
                select id from owners where id in (select n.owner from names n where n.name = any(wanted)) and until > now() + 2 * ttl
                for update skip locked
            ) far where o.id = far.id;
        end if;
    end if;
    kept := (select encode(n.data, 'hex') from names n where n.name = any(wanted) and n.data is not null order by n.owner is null limit 1);
    perform end_call(me, call, sent, within, null);
    return query select alive, null::text, kept;
end $$;

create or replace function put(
    me uuid, call bigint, seen bigint, sent timestamptz, within interval, enter interval,
    wanted text, fresh bytea, is_new boolean, keep interval, release boolean, at timestamptz
) returns table (alive boolean, done boolean) language plpgsql security definer set search_path from current as $$
declare
    b record;
    n names;
begin
    select * into b from begin_call(me, call, seen, sent, within, enter);
    at := coalesce(at, now());
    done := false;
    if b.is_repeat then
        return query select b.alive, b.answer = 'done';
        return;
    end if;
    if b.alive then
        if is_new then
            select * into n from names where name = wanted;
            -- What somebody owns is not dropped.
            if not found or n.owner = me or n.data is null or (n.keep_until <= at and not is_living(n.owner)) then
                select t.taken into done from take(me, wanted, true, at) t;
            end if;
        else
            perform from names where name = wanted and owner = me for update;
            done := found;
        end if;
        if done then
            update names set data = fresh, keep_until = at + keep, owner = case when release then null else me end where name = wanted;
        end if;
    end if;
    perform end_call(me, call, sent, within, case when done then 'done' else 'lost' end);
    return query select b.alive, done;
end $$;

create or replace function delete(
    me uuid, call bigint, seen bigint, sent timestamptz, within interval, enter interval, wanted text, at timestamptz
) returns table (alive boolean, done boolean) language plpgsql security definer set search_path from current as $$
declare
    b record;
    n names;
begin
    select * into b from begin_call(me, call, seen, sent, within, enter);
    if b.is_repeat then
        return query select b.alive, b.answer = 'done';
        return;
    end if;
    select * into n from names where name = wanted for update;
    if n.owner = me and b.alive then
        delete from names where name = wanted;
        done := true;
    else
        done := n.data is null or (n.keep_until <= coalesce(at, now()) and (n.owner is null or not is_living(n.owner)));
    end if;
    perform end_call(me, call, sent, within, case when done then 'done' else 'lost' end);
    return query select b.alive, coalesce(done, false);
end $$;

-- Releases some names, or all. With `leaves` the client has closed.
create or replace function release(
    me uuid, call bigint, seen bigint, sent timestamptz, within interval, which text[], leaves boolean
) returns table (alive boolean) language plpgsql security definer set search_path from current as $$
begin
    select b.alive into alive from begin_call(me, call, seen, sent, within, null) b;
    delete from names where owner = me and data is null and (which is null or name = any(which));
    update names set owner = null where owner = me and (which is null or name = any(which));
    perform end_call(me, call, sent, within, null);
    if leaves then
        update owners set until = '-infinity' where id = me;
    end if;
    return query select alive;
end $$;

-- A client that does not trust its claims any more has another id from then on, and begins with this: it is not busy with itself.
create or replace function leave(former uuid) returns void language sql security definer set search_path from current as
$$ update owners set until = '-infinity' where id = former $$;

create or replace function list(me uuid, space text, after text, is_open boolean, at timestamptz)
returns table (found text, kept text, whose text) language sql stable security definer set search_path from current as $$
    select name, encode(data, 'hex'), case when not (owner is not null and is_living(owner)) then 'free' when owner = me then 'mine' else 'other' end
        from names
        where name > coalesce(after, space || '.') and name > space || '.' and name < space || '/' and data is not null
            and (keep_until is null or not is_open and (keep_until > coalesce(at, now()) or owner is not null and is_living(owner)))
        order by name limit 501
$$;

-- A function, since one statement would read the sum before it waits for those that spend at the same time, and count wrong.
create or replace function spend(
    me uuid, call bigint, seen bigint, sent timestamptz, within interval, enter interval,
    wanted text, what text, fresh numeric, given int, cap numeric, at timestamptz
) returns table (alive boolean, is_granted boolean, on_day int, total numeric) language plpgsql security definer set search_path from current as $$
declare
    b record;
    before numeric;
begin
    select * into b from begin_call(me, call, seen, sent, within, enter);
    if b.is_repeat then
        return query select b.alive, a[1] = 'granted', a[2]::int, a[3]::numeric from string_to_array(b.answer, ' ') a;
        return;
    end if;
    insert into days values (wanted, -1, 0) on conflict do nothing;
    perform from days d where d.space = wanted and d.day = -1 for update;
    -- The day never goes back.
    on_day := greatest(floor(extract(epoch from coalesce(at, now())) / 86400)::int, (select max(d.day) from days d where d.space = wanted));
    on_day := coalesce(given, on_day);
    before := coalesce((select e.amount from entries e where e.space = wanted and e.day = on_day and e.entry = what), 0);
    total := coalesce((select d.sum from days d where d.space = wanted and d.day = on_day), 0);
    is_granted := cap is null or fresh <= before or total - before + fresh <= cap;
    if is_granted then
        total := total - before + fresh;
        insert into entries values (wanted, on_day, what, fresh) on conflict (space, day, entry) do update set amount = fresh;
        insert into days values (wanted, on_day, total) on conflict (space, day) do update set sum = excluded.sum;
    end if;
    perform end_call(me, call, sent, within, concat_ws(' ', case when is_granted then 'granted' else 'over' end, on_day, total));
    return query select b.alive, is_granted, on_day, total;
end $$;

-- Deletes what is over. A day is left for clocks that were set, and an owner is remembered for as long as a late call of its may come.
create or replace function sweep() returns void language plpgsql as $$
begin
    delete from names where name in (
        select n.name from names n where keep_until < now() - interval '1 day' and (owner is null or not is_living(owner))
            order by keep_until limit 500 for update skip locked);
    delete from names where name in (
        select n.name from names n join owners d on n.owner = d.id where d.until < now() - interval '1 hour' and n.data is null
            limit 500 for update of n skip locked);
    delete from owners where id in (
        select id from owners d where last_seen < now() - interval '40 days' and until < now() and not exists (select from names where owner = d.id)
            limit 500 for update skip locked);
    -- The newest day stays, since days never go back.
    delete from entries e using (select space, max(day) as day from days group by space) last where e.space = last.space and e.day < last.day - 40;
    delete from days d using (select space, max(day) as day from days group by space) last
        where d.space = last.space and d.day between 0 and last.day - 41;
end $$;

-- Renews the claims of a client, if they have not ended. Now and then it also deletes what is over.
create or replace function renew(me uuid, seen bigint, sent timestamptz, within interval, sweeps boolean)
returns table (alive boolean) language plpgsql security definer set search_path from current as $$
declare
    o owners;
begin
    perform check_time(sent, within);
    select * into o from owners where id = me for update;
    if not found or o.last_call < seen then
        raise exception 'the database has lost what it had confirmed' using errcode = 'HL003';
    end if;
    alive := o.until > '-infinity';
    if alive then
        update owners set until = life(until, ttl), last_seen = now() where id = me;
    end if;
    if sweeps then
        perform from format where swept_at < now() - interval '10 minutes' for update skip locked;
        if found then
            update format set swept_at = now();
            perform sweep();
        end if;
    end if;
    perform check_time(sent, within);
    return query select alive;
end $$;

-- What a client must know before its first call.
create or replace function greet() returns table (version int, works_from int) language sql stable security definer set search_path from current as
$$ select version, works_from from format $$;

-- The records of each space that stay until somebody deals with them, without those of pools themselves.
create or replace function spaces() returns table (space text, records bigint) language sql stable security definer set search_path from current as $$
    select split_part(name, '.', 1), count(*) from names where keep_until is null and data is not null and split_part(name, '.', 2) not like 'q%' group by 1
$$;

-- What `hopline store check` shows.
create or replace function report() returns table (what text, number bigint) language sql stable security definer set search_path from current as $$
    select 'names', count(*) from names where data is not null
    union all select 'open', count(*) from names where data is not null and keep_until is null
    union all select 'owned', count(*) from names where owner is not null and is_living(owner)
    union all select 'left', count(*) from names where owner is not null and not is_living(owner)
    union all select 'clients', count(*) from owners where until > now()
$$;

revoke all on all functions in schema "hopline" from public;
insert into format (is_one, version, works_from) values (true, 1, 1) on conflict (is_one) do update set version = greatest(format.version, excluded.version);
commit;
