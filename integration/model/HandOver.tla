------------------------------ MODULE HandOver ------------------------------
\* The hand-over of a lock from its holder to a waiter, within a process and between processes.
\* States, events and outcomes are those of internal/waitqueue (states.go, handover.go). What happens
\* at the server is lua/acquire.lua and lua/release.lua with common/waiters.lua.
\* The rest is rlock: attempt.go, waiting.go, release.go, grant.go, cleaner.go.
\*
\* Each owner waits once, and holds the lock once, because each acquisition has a name of its own in
\* Redis. A command is sent, is executed some time later, and its reply arrives some time after that.
\* Any of these may never happen; a command whose caller has given up may be executed at any time.
\* A process that pauses does nothing for a while, which any process may do here.
\*
\* Time. The leases of an owner are numbered by the server. A command, when it is sent, is stamped
\* with the number of the first lease of its owner that may begin after it. An owner that counts from
\* there trusts the lock until a lease with that number or a later one has ended: its own clock tells
\* it so before. Real owners trust a lease that was extended by a later request for less long.
\* Tickets are numbered for each owner, because only those of one owner are compared.
\*
\* Left out:
\*   - Renewals, nested levels and closing clients, which are not about waiters. Fencing tokens.
\*   - Detached commands: a worker then waits for the reply instead of the caller, and cleans up as
\*     the cleaner does here after an abandoned one.
\*   - The number of turns within a process and of hand-overs since the lock was free: the choices
\*     that depend on them, First and forOnce, may be made either way at any time.
\*   - Advice about short leases: it makes a head ask, which it may do at any time here.
\*   - Lost cleanups: they are sent again until one is confirmed, and can be repeated since no owner
\*     comes back.
\* Bounds: the number of waiters; one request of each owner that is executed late, one release in
\* doubt of each owner, one stranger, and Faults: lost replies and messages, commands that time out,
\* leases that end, connections and processes that end, cleanups that are given up.

EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Waiters,   \* the owners: any of "w1", "w2", "w3" in the process "p1", of "w4", "w5", "w6" in "p2"
  Leavers,   \* those that may leave without the lock
  Mortal,    \* the processes that may die
  Kinds,     \* the faults that may happen: see Fault
  Faults,    \* how many of them
  Stranger,  \* whether a client waits that does not register, such as Redisson's
  Without    \* the rules that are left out

VARIABLES
  server,    \* the lock and its registrations
  queue,     \* process -> the owners in its local queue; the first one is its head
  waiter,    \* owner -> its waitqueue.Waiter
  owner,     \* owner -> what rlock knows: what may remain of it, its hold, its cleanup
  wire,      \* commands, replies and messages on their way
  world      \* connections, the stranger, and what went wrong

vars == <<server, queue, waiter, owner, wire, world>>

Rule(r) == r \notin Without

Processes == {"p1", "p2"}
Number(w) == CASE w \in {"w1", "w4"} -> 1 [] w \in {"w2", "w5"} -> 2 [] OTHER -> 3
Home(w) == IF w \in {"w1", "w2", "w3"} THEN "p1" ELSE "p2"
None == "none"
Java == "java"
Max(a, b) == IF a > b THEN a ELSE b

\* Why a waiter is awake (wake.go). Sleeps is Ended there, and Looks is Paused: it is about to ask, by
\* itself or because of an announcement. BecameHead alone is no reason to ask.
Sleeps == 0
BecameHead == 1
Looks == 2
Retry == 3
HasGrant == 4

\* What may remain of an owner in Redis (queue.go).
Nothing == 0
Something == 1
Late == 2

\* Cleanups that are due, ordered: a greater one includes the smaller ones.
NoCleanup == 0
Releases == 1   \* releases the lock
Withdraws == 2  \* also withdraws the registration
Repeats == 3    \* again and again, while a command may be executed late
Again == 4      \* it was executed once at least

\* ------------------------------------------------------------------ the rules
\* RULE latestTicket BREAKS OneHolder
\*   A message for an earlier registration is trusted: the waiter counts a lease that is over from
\*   its latest request.
\*   STEPS ExecuteRelease Refuse Ask Deliver Expire JavaAsks ExecuteAsk Refuse Accept
\*   WITH Leavers = {}; Mortal = {}; Kinds = {"lease"}
\* RULE knownTicket BREAKS OneHolder
\*   A message is trusted although the reply with the ticket of the last request did not arrive, and
\*   its lease is counted from that request.
\*   STEPS ExecuteRelease Refuse Ask LoseReply Deliver Accept Expire
\*   WITH Leavers = {}; Mortal = {}; Kinds = {"lease", "reply"}; Faults = 2
\* RULE ticketsIncrease BREAKS OneHolder
\*   A ticket is used again: the message for the earlier registration passes for one for the latest.
\*   STEPS ExecuteRelease Refuse Ask Deliver Expire JavaAsks ExecuteAsk Refuse Accept
\*   WITH Leavers = {}; Mortal = {}; Kinds = {"lease"}
\* RULE leaseFromRequest BREAKS OneHolder
\*   A lease is counted from the arrival of the message, which was late: the waiter trusts it when it
\*   is over.
\*   STEPS ExecuteRelease Refuse Deliver Accept Expire
\*   WITH Leavers = {}; Mortal = {}; Kinds = {"lease"}
\* RULE listedWhenOffered BREAKS OneHolder
\*   A release that may register its successor does not prepare for a grant before its own reply.
\*   The message seems to be for nobody: the lock is released, which the waiter has got by asking.
\*   STEPS Release ExecuteRelease Deliver Ask ExecuteAsk Acquire CleanUp
\*   WITH Waiters = {"w1", "w2", "w4"}; Leavers = {}; Kinds = {}; Stranger = FALSE
\* RULE holderIgnoresMessages BREAKS OneHolder
\*   A message comes for an owner that has got the lock by asking, and its lock is released.
\*   STEPS ExecuteRelease Ask ExecuteAsk Acquire Deliver CleanUp
\*   WITH Leavers = {}; Kinds = {}; Stranger = FALSE
\* RULE askEndsRegistration BREAKS NoGhost
\*   A request that gets the lock leaves the owner's registration behind.
\*   STEPS Refuse Ask ExecuteAsk Acquire Release ExecuteRelease Settle
\*   WITH Leavers = {}; Kinds = {}; Stranger = FALSE
\* RULE askWithRegistration BREAKS NoGhost
\*   A waiter that may be registered asks without, because it does not hear: it gets the lock, and
\*   its registration stays.
\*   STEPS ExecuteAsk Disconnect Ask ExecuteAsk Acquire
\*   WITH Leavers = {}; Kinds = {"connection"}; Stranger = FALSE
\* RULE messageReleases BREAKS NoGhost
\*   A message for an owner that neither waits nor holds is ignored: a request that was executed
\*   between two cleanups, the last one, has registered it.
\*   STEPS Abandon Leave CleanUp LateAsk GiveUpCleanup ExecuteRelease Deliver
\*   WITH Leavers = {"w4"}; Kinds = {"late", "giveUp"}; Faults = 2; Stranger = FALSE
\* RULE waitForOffer BREAKS NoGhost
\*   A waiter leaves while a release names it, and nobody looks at the outcome.
\*   STEPS Release ExecuteRelease Leave
\*   WITH Waiters = {"w1", "w2"}; Leavers = {"w2"}; Kinds = {}; Stranger = FALSE
\* RULE cleanUpAgain BREAKS NoGhost
\*   The cleanup after a command that may be executed late is not repeated.
\*   STEPS Abandon Leave CleanUp LateAsk
\*   WITH Leavers = {"w4"}; Kinds = {"late"}; Stranger = FALSE
\* RULE lateNamesNobody BREAKS NoGhost
\*   A holder with a request that may be executed late names a successor. That one gets the lock by
\*   asking, and releases it; the late request takes it. Only then is the first release executed, and
\*   gives the lock to its successor again, whose hold is over.
\*   STEPS Abandon Acquire Release Expire LateAsk Release ExecuteRelease ExecuteRelease Settle
\*   WITH Waiters = {"w1", "w2"}; Leavers = {}; Kinds = {"late", "lease"}; Faults = 2; Stranger = FALSE
\* RULE cleanUpWithdraws BREAKS NoGhost
\*   The cleanup of a waiter that has left does not end its registration.
\*   STEPS Refuse Leave CleanUp
\*   WITH Leavers = {"w4"}; Kinds = {}; Stranger = FALSE
\* RULE passOverDeaf BREAKS NoGhost
\*   A release grants the lock to a client that does not listen any more.
\*   STEPS Die ExecuteRelease
\*   WITH Leavers = {}; Kinds = {"death"}; Stranger = FALSE
\* RULE strangersAreTold BREAKS StrangersAreTold
\*   A release grants the lock although a client waits that can only hear announcements.
\*   STEPS JavaWaits ExecuteRelease
\*   WITH Leavers = {}; Kinds = {}
\* RULE uncertainAsks BREAKS NoMissedWakeUp
\*   The successor of a release without a reply does not ask.
\*   STEPS Release ExecuteRelease LoseSettlement
\*   WITH Waiters = {"w1", "w2"}; Leavers = {}; Kinds = {"reply"}; Stranger = FALSE
\* RULE leaverPassesOn BREAKS NoMissedWakeUp
\*   A head leaves with the announcement that it was woken for, and the next head sleeps on.
\*   STEPS Join Leave
\*   WITH Waiters = {"w1", "w2"}; Leavers = {"w1"}; Kinds = {}; Stranger = FALSE
\* RULE lookAgain BREAKS WaiterIsServed
\*   A waiter whose message was lost sleeps until somebody wakes it.
\*   STEPS Release ExecuteRelease LoseMessage
\*   WITH Kinds = {"message"}

\* ------------------------------------------------------------------ the server
Registered(s, w) == \E i \in DOMAIN s.waiters : s.waiters[i] = w
Drop(q, w) == SelectSeq(q, LAMBDA x : x # w)

\* register in common/waiters.lua. The owner's registration has the last ticket issued to it.
Register(s, w) ==
  IF Registered(s, w) THEN s
  ELSE [s EXCEPT !.waiters = Append(@, w),
                 !.issued[w] = IF Rule("ticketsIncrease") THEN @ + 1 ELSE 1]

Give(s, w) == [s EXCEPT !.holder = w, !.leases[w] = @ + 1]

\* acquire.lua: the server afterwards.
AfterAsk(s, w, registers) ==
  IF s.holder \in {None, w}
  THEN LET t == Give(s, w)
       IN IF registers /\ Rule("askEndsRegistration")
          THEN [t EXCEPT !.waiters = Drop(@, w)] ELSE t
  ELSE IF registers THEN Register(s, w) ELSE s

\* ZPOPMIN until the registration is that of one of those.
RECURSIVE Until(_, _)
Until(q, those) == IF q = <<>> \/ Head(q) \in those THEN q ELSE Until(Tail(q), those)

StrangerListens == world.java = "waits"
Hears(w) == world.listens[Home(w)]

\* release.lua, when the leaving owner has the lock. others: registered waiters may get it. forOnce:
\* after some hand-overs it is announced instead, even if some are registered. first: the successor,
\* to, comes before all of them.
Passed(s, leaving, others, forOnce, to, first) ==
  LET free == [s EXCEPT !.holder = None]
      all == [server |-> free, outcome |-> "ToAll", granted |-> None, announced |-> TRUE]
      successor(t) == [server |-> Give([t EXCEPT !.waiters = Drop(@, to)], to),
                       outcome |-> "ToSuccessor", granted |-> None, announced |-> FALSE]
      popped == Until(s.waiters, Waiters \ {leaving})
      told == StrangerListens /\ Rule("strangersAreTold")
      heard == Until(popped, {w \in Waiters \ {leaving} : Hears(w) \/ ~Rule("passOverDeaf")})
      oldest == Head(heard)
      given == Give([free EXCEPT !.waiters = Tail(heard)], oldest)
      named == to \notin {None, oldest}
  IN IF first THEN successor(free)
     ELSE IF ~others \/ forOnce THEN all
     ELSE IF popped # <<>> /\ told THEN [all EXCEPT !.server.waiters = popped]
     ELSE IF heard # <<>> THEN
            [server |-> IF named THEN Register(given, to) ELSE given, granted |-> oldest,
             outcome |-> IF named THEN "SuccessorRegistered" ELSE "ToAll", announced |-> FALSE]
     ELSE IF to # None /\ ~told THEN successor([free EXCEPT !.waiters = <<>>])
     ELSE [all EXCEPT !.server.waiters = <<>>]

\* What a release that passed the lock on sends: a message to the owner, or announcements.
Sent(m, r) ==
  [m EXCEPT
    !.messages = IF r.granted # None /\ Hears(r.granted)
                 THEN @ \cup {[to |-> r.granted, ticket |-> r.server.issued[r.granted]]} ELSE @,
    !.told = IF r.announced THEN @ \cup {p \in Processes : world.listens[p]} ELSE @]

\* The world after it: whether the stranger was told, and whether only a lease ends what remains.
Noted(x, r, first) ==
  [x EXCEPT
    !.java = IF @ # "waits" \/ first THEN @ ELSE IF r.announced THEN @ ELSE "passed",
    !.javaTold = @ \/ (r.announced /\ x.java = "waits"),
    !.outlived = IF r.granted # None /\ wire.lateAsks[r.granted] = None
                 THEN @ \ {r.granted} ELSE @]

\* TLC evaluates what \E chooses once, but an argument or what LET defines at each use where it
\* evaluates ENABLED.
Pass(passed, first) ==
  \E r \in {passed} :
    server' = r.server /\ wire' = Sent(wire, r) /\ world' = Noted(world, r, first)

\* ------------------------------------------------------------------ waiters
Alive(w) == world.alive[Home(w)]
IsHead(w) == queue[Home(w)] # <<>> /\ Head(queue[Home(w)]) = w
Now(w) == server.leases[w] + 1
Trusted(w, since) == server.ended[w] < since
Asking(x) == x.state \in {"Asking", "OfferedAsking"}
Wake(x, r) == [x EXCEPT !.reason = Max(@, r)]

\* giveGrant in wake.go
GiveGrant(x, since) ==
  IF x.state = "Granted" THEN x
  ELSE IF Asking(x) THEN [x EXCEPT !.given = since]
  ELSE [x EXCEPT !.given = since, !.state = "Granted", !.reason = HasGrant]

\* readMessages in handover.go
ReadMessages(x, w) ==
  IF Asking(x) \/ x.state = "Offered" THEN x
  ELSE
    LET known == x.ticket # 0 \/ ~Rule("knownTicket")
        grant == known /\ \E t \in x.unread :
                   t = x.ticket \/ x.ticket = 0 \/ (t < x.ticket /\ ~Rule("latestTicket"))
        newer == \E t \in x.unread : x.ticket = 0 \/ t > x.ticket
        y == IF newer THEN Wake(x, Retry) ELSE x
        since == IF Rule("leaseFromRequest") THEN x.asked ELSE Now(w)
    IN [(IF grant THEN GiveGrant(y, since) ELSE y) EXCEPT !.unread = {}]

\* Waiter.Reply
Replied(x, w, t, since) ==
  LET early == x.given
      y == [x EXCEPT !.state = IF @ = "Asking" THEN "Waiting" ELSE "Offered",
                     !.newer = @ \/ (x.state = "OfferedAsking" /\ t # 0),
                     !.ticket = IF t # 0 THEN t ELSE @,
                     !.asked = IF t # 0 \/ ~Rule("knownTicket") THEN since ELSE @]
      z == ReadMessages(y, w)
  IN IF early # 0 /\ z.state = "Waiting" THEN GiveGrant(z, early) ELSE z

\* Offer.Settle, for a successor that has not left.
Settled(x, w, outcome, since, ticket, late) ==
  LET remains == outcome \in {"Uncertain", "ToSuccessor", "SuccessorRegistered"}
      y == [x EXCEPT !.state = IF @ = "Offered" THEN "Waiting" ELSE "Asking",
                     !.registered = @ \/ remains,
                     !.late = @ \/ late,
                     !.newer = FALSE]
      z == CASE outcome = "ToSuccessor" ->
                  GiveGrant(y, IF Rule("leaseFromRequest") THEN since ELSE Now(w))
             [] outcome = "SuccessorRegistered" ->
                  IF x.newer THEN Wake(y, Retry)
                  ELSE IF Asking(y) THEN y
                  ELSE [y EXCEPT !.ticket = ticket, !.asked = since]
             [] outcome \in {"Uncertain", "ToNobody"} ->
                  IF Rule("uncertainAsks") THEN Wake(y, Retry) ELSE y
             [] OTHER -> y
  IN ReadMessages(z, w)

\* The queue of a process, and its waiters, after w has left it: Waiter.Leave.
LeftQueue(ws, w, state, retry) ==
  LET q == queue[Home(w)]
      rest == Drop(q, w)
      left == [ws EXCEPT ![w].state = state, ![w].listed = FALSE, ![w].reason = Sleeps,
                         ![w].unread = {}, ![w].given = 0, ![w].ticket = 0, ![w].asked = 0,
                         ![w].newer = FALSE]
  IN /\ queue' = [queue EXCEPT ![Home(w)] = rest]
     /\ waiter' = IF Head(q) = w /\ rest # <<>>
                  THEN [left EXCEPT ![Head(rest)] = Wake(@, IF retry THEN Retry ELSE BecameHead)]
                  ELSE left

Fault(kind) == kind \in Kinds /\ world.faults < Faults
Failed(x) == [x EXCEPT !.faults = @ + 1]
Silent(x) == [x EXCEPT !.faults = @ + 1, !.silent = TRUE]

NoRequest == [phase |-> "none", registers |-> FALSE, since |-> 0, ticket |-> 0, got |-> FALSE]
NoRelease == [phase |-> "none", to |-> None, first |-> FALSE, since |-> 0, outcome |-> "",
              ticket |-> 0]

Join(w) ==
  /\ waiter[w].state = "Out" /\ Alive(w)
  /\ \A v \in Waiters : Home(v) = Home(w) /\ Number(v) < Number(w) => waiter[v].state # "Out"
  /\ queue' = [queue EXCEPT ![Home(w)] = Append(@, w)]
  /\ waiter' = [waiter EXCEPT ![w].state = "Waiting",
                              ![w].reason = IF queue[Home(w)] = <<>> THEN Looks ELSE Sleeps]
  /\ UNCHANGED <<server, owner, wire, world>>

\* Waiter.Ask. A head asks when it was woken, and by itself after 5 s at most.
Ask(w) ==
  LET x == waiter[w]
      registers == Hears(w) \/ (x.registered /\ Rule("askWithRegistration"))
  IN
  /\ Alive(w) /\ IsHead(w)
  /\ x.state \in {"Waiting", "Offered", "Granted"}
  /\ Rule("lookAgain") \/ x.reason # Sleeps
  /\ waiter' = [waiter EXCEPT
       ![w].state = IF @ = "Offered" THEN "OfferedAsking" ELSE "Asking",
       ![w].ticket = 0, ![w].given = 0, ![w].reason = Sleeps,
       ![w].registered = @ \/ registers, ![w].listed = @ \/ registers]
  /\ owner' = [owner EXCEPT ![w].remains = IF x.state = "Granted" THEN Max(@, Something) ELSE @]
  /\ wire' = [wire EXCEPT !.asks[w] = [NoRequest EXCEPT !.phase = "sent", !.since = Now(w),
                                                        !.registers = registers]]
  /\ UNCHANGED <<server, queue, world>>

ExecuteAsk(w) ==
  LET r == wire.asks[w] IN
  /\ r.phase = "sent"
  /\ \E s \in {AfterAsk(server, w, r.registers)} :
       LET got == s.holder = w IN
       /\ server' = s
       /\ wire' = [wire EXCEPT !.asks[w].phase = "done", !.asks[w].got = got,
            !.asks[w].ticket = IF ~got /\ r.registers THEN s.issued[w] ELSE 0]
  /\ UNCHANGED <<queue, waiter, owner, world>>

\* The reply says that the owner has the lock, and its lease is not over: attempt.try, Waiter.Leave.
Acquire(w) ==
  LET r == wire.asks[w] IN
  /\ r.phase = "done" /\ r.got /\ Alive(w) /\ Trusted(w, r.since)
  /\ LeftQueue(waiter, w, "Acquired", FALSE)
  /\ owner' = [owner EXCEPT ![w].hold = "holds", ![w].since = r.since]
  /\ wire' = [wire EXCEPT !.asks[w] = NoRequest]
  /\ UNCHANGED <<server, world>>

\* The lease is over when the reply arrives.
AcquireTooLate(w) ==
  LET r == wire.asks[w] IN
  /\ r.phase = "done" /\ r.got /\ Alive(w) /\ ~Trusted(w, r.since)
  /\ waiter' = [waiter EXCEPT ![w] = Wake(Replied(@, w, 0, r.since), Looks)]
  /\ owner' = [owner EXCEPT ![w].remains = Max(@, Something)]
  /\ wire' = [wire EXCEPT !.asks[w] = NoRequest]
  /\ UNCHANGED <<server, queue, world>>

Refuse(w) ==
  LET r == wire.asks[w] IN
  /\ r.phase = "done" /\ ~r.got /\ Alive(w)
  /\ waiter' = [waiter EXCEPT ![w] = Replied(@, w, r.ticket, r.since)]
  /\ owner' = [owner EXCEPT ![w].remains = IF @ = Late THEN @ ELSE
                                           IF r.registers THEN Something ELSE Nothing]
  /\ wire' = [wire EXCEPT !.asks[w] = NoRequest]
  /\ UNCHANGED <<server, queue, world>>

\* The connection is lost: the request was executed, or never will be.
LoseReply(w) ==
  LET r == wire.asks[w] IN
  /\ r.phase # "none" /\ Alive(w) /\ Fault("reply")
  /\ waiter' = [waiter EXCEPT ![w] = Wake(Replied(@, w, 0, r.since), Looks)]
  /\ owner' = [owner EXCEPT ![w].remains = Max(@, Something)]
  /\ wire' = [wire EXCEPT !.asks[w] = NoRequest]
  /\ world' = Failed(world)
  /\ UNCHANGED <<server, queue>>

\* The request times out, and may be executed at any time.
Abandon(w) ==
  LET r == wire.asks[w] IN
  /\ r.phase = "sent" /\ Alive(w) /\ Fault("late") /\ wire.lateAsks[w] = None
  /\ waiter' = [waiter EXCEPT ![w] = Wake(Replied(@, w, 0, r.since), Looks)]
  /\ owner' = [owner EXCEPT ![w].remains = Late]
  /\ wire' = [wire EXCEPT !.asks[w] = NoRequest,
                          !.lateAsks[w] = IF r.registers THEN "registers" ELSE "plain"]
  /\ world' = Failed(world)
  /\ UNCHANGED <<server, queue>>

\* An owner that has asked since, and was refused, finds out when it asks again.
LateAsk(w) ==
  /\ wire.lateAsks[w] # None
  /\ server' = AfterAsk(server, w, wire.lateAsks[w] = "registers")
  /\ wire' = [wire EXCEPT !.lateAsks[w] = None]
  /\ world' = [world EXCEPT !.silent = @ \/ (server'.holder = w /\ server.holder # w)]
  /\ UNCHANGED <<queue, waiter, owner>>

\* attempt.accept. With too little left of the lease the waiter asks instead: see Ask.
Accept(w) ==
  /\ waiter[w].state = "Granted" /\ Alive(w) /\ Trusted(w, waiter[w].given)
  /\ LeftQueue(waiter, w, "Acquired", FALSE)
  /\ owner' = [owner EXCEPT ![w].hold = "holds", ![w].since = waiter[w].given]
  /\ UNCHANGED <<server, wire, world>>

\* The waiter's context or budget ends. rlock cleans up what may remain.
Leave(w) ==
  LET x == waiter[w]
      r == IF x.late THEN Late ELSE IF x.registered THEN Something ELSE Nothing
      remains == Max(r, owner[w].remains)
      waits == x.state = "Offered" /\ Rule("waitForOffer")
  IN
  /\ w \in Leavers /\ Alive(w) /\ x.state \in {"Waiting", "Offered", "Granted"}
  /\ LeftQueue(waiter, w, IF waits THEN "LeftOffered" ELSE "Left", Rule("leaverPassesOn"))
  /\ owner' = [owner EXCEPT ![w].remains = r,
       ![w].cleanup = CASE remains = Late -> Repeats
                        [] remains = Something -> Withdraws [] OTHER -> NoCleanup]
  /\ UNCHANGED <<server, wire, world>>

\* ------------------------------------------------------------------ releases
\* The holder sends its release, with the head of its queue as the successor if that waits: Offer.
\* It names none if a late request may give the lock to its own name again.
Release(w, first) ==
  LET q == queue[Home(w)]
      names == owner[w].remains # Late \/ ~Rule("lateNamesNobody")
      to == IF q # <<>> /\ waiter[Head(q)].state = "Waiting" /\ names THEN Head(q) ELSE None
  IN
  /\ owner[w].hold = "holds" /\ Alive(w) /\ Trusted(w, owner[w].since)
  /\ to = None => ~first
  /\ owner' = [owner EXCEPT ![w].hold = "releasing"]
  /\ wire' = [wire EXCEPT !.releases[w] = [NoRelease EXCEPT !.phase = "sent", !.to = to,
                  !.first = first, !.since = IF to = None THEN 0 ELSE Now(to)]]
  /\ waiter' = IF to = None THEN waiter
               ELSE [waiter EXCEPT ![to].state = "Offered", ![to].newer = FALSE,
                      ![to].listed = @ \/ (~first /\ Rule("listedWhenOffered"))]
  /\ UNCHANGED <<server, queue, world>>

ExecuteRelease(w, forOnce) ==
  LET r == wire.releases[w]
      done(m, outcome, ticket) == [m EXCEPT !.releases[w].phase = "done",
                                     !.releases[w].outcome = outcome, !.releases[w].ticket = ticket]
  IN
  /\ r.phase = "sent"
  /\ forOnce => ~r.first
  /\ IF server.holder = w
     THEN \E p \in {Passed(server, w, TRUE, forOnce, r.to, r.first)} :
          /\ server' = p.server
          /\ wire' = done(Sent(wire, p), p.outcome,
                          IF p.outcome = "SuccessorRegistered" THEN p.server.issued[r.to] ELSE 0)
          /\ world' = Noted(world, p, r.first)
     ELSE /\ ~forOnce
          /\ wire' = done(wire, "ToNobody", 0)
          /\ UNCHANGED <<server, world>>
  /\ UNCHANGED <<queue, waiter, owner>>

\* The owner's hold is over. What a late request of it may leave is cleaned up: cleanUpLate.
Over(o, w, cleanup) ==
  [o EXCEPT ![w].hold = "over", ![w].since = 0,
            ![w].cleanup = Max(cleanup, IF o[w].remains = Late THEN Repeats ELSE NoCleanup)]

\* Offer.Settle, and what rlock does if the successor has left.
SettleWith(o, to, outcome, since, ticket, late) ==
  LET x == waiter[to]
      remains == outcome \in {"Uncertain", "ToSuccessor", "SuccessorRegistered"}
  IN IF to = None THEN waiter' = waiter /\ owner' = o
     ELSE IF x.state = "LeftOffered"
     THEN /\ waiter' = [waiter EXCEPT ![to].state = "Left"]
          /\ owner' = IF remains
                      THEN [o EXCEPT ![to].cleanup = Max(@, IF late THEN Repeats ELSE Withdraws)]
                      ELSE o
     ELSE IF x.state \in {"Acquired", "Left"} THEN waiter' = waiter /\ owner' = o
     ELSE /\ waiter' = [waiter EXCEPT ![to] = Settled(@, to, outcome, since, ticket, late)]
          /\ owner' = o

Settle(w) ==
  LET r == wire.releases[w] IN
  /\ r.phase = "done" /\ Alive(w)
  /\ SettleWith(Over(owner, w, NoCleanup), r.to, r.outcome, r.since, r.ticket, FALSE)
  /\ wire' = [wire EXCEPT !.releases[w] = NoRelease]
  /\ UNCHANGED <<server, queue, world>>

\* The connection is lost. The release is sent again, without an offer.
LoseSettlement(w) ==
  LET r == wire.releases[w] IN
  /\ r.phase # "none" /\ Alive(w) /\ Fault("reply")
  /\ SettleWith(owner, r.to, "Uncertain", r.since, 0, FALSE)
  /\ wire' = [wire EXCEPT !.releases[w] = [NoRelease EXCEPT !.phase = "sent"]]
  /\ world' = Failed(world)
  /\ UNCHANGED <<server, queue>>

\* The release times out, and may be executed at any time. The cleaner takes over.
AbandonRelease(w) ==
  LET r == wire.releases[w] IN
  /\ r.phase = "sent" /\ Alive(w) /\ Fault("late")
  /\ SettleWith(Over(owner, w, Releases), r.to, "Uncertain", r.since, 0, TRUE)
  /\ wire' = [wire EXCEPT !.releases[w] = NoRelease, !.lateReleases[w] = r]
  /\ world' = Failed(world)
  /\ UNCHANGED <<server, queue>>

\* A successor that has asked since, and was refused, finds out when it asks again.
LateRelease(w) ==
  LET r == wire.lateReleases[w]
      p == Passed(server, w, TRUE, FALSE, r.to, r.first)
  IN
  /\ r.phase # "none"
  /\ IF server.holder = w
     THEN /\ server' = p.server
          /\ wire' = [Sent(wire, p) EXCEPT !.lateReleases[w] = NoRelease]
          /\ world' = [Noted(world, p, r.first) EXCEPT !.silent = @ \/ p.outcome = "ToSuccessor"]
     ELSE wire' = [wire EXCEPT !.lateReleases[w] = NoRelease] /\ UNCHANGED <<server, world>>
  /\ UNCHANGED <<queue, waiter, owner>>

\* The holder finds that its lease is over.
Lose(w) ==
  /\ owner[w].hold = "holds" /\ Alive(w) /\ ~Trusted(w, owner[w].since)
  /\ owner' = Over(owner, w, NoCleanup)
  /\ UNCHANGED <<server, queue, waiter, wire, world>>

\* cleaner.go. others: a release may grant the lock, because its number of hand-overs is known.
CleanUp(w, others) ==
  LET how == owner[w].cleanup
      s == IF how >= Withdraws /\ Rule("cleanUpWithdraws")
           THEN [server EXCEPT !.waiters = Drop(@, w)] ELSE server
      again == /\ how >= Repeats /\ Rule("cleanUpAgain")
               /\ \/ wire.lateAsks[w] # None
                  \/ \E v \in Waiters :
                       wire.lateReleases[v].phase # "none" /\ wire.lateReleases[v].to = w
  IN
  /\ how # NoCleanup /\ Alive(w)
  /\ owner' = [owner EXCEPT ![w].cleanup = IF again THEN Again ELSE NoCleanup]
  /\ IF server.holder = w THEN Pass(Passed(s, w, others, FALSE, None, FALSE), FALSE)
     ELSE ~others /\ server' = s /\ UNCHANGED <<wire, world>>
  /\ UNCHANGED <<queue, waiter>>

\* A cleanup is not repeated for ever: the command is executed later than expected.
GiveUpCleanup(w) ==
  /\ owner[w].cleanup = Again /\ Fault("giveUp")
  /\ owner' = [owner EXCEPT ![w].cleanup = NoCleanup]
  /\ world' = [Failed(world) EXCEPT !.outlived = @ \cup {w}]
  /\ UNCHANGED <<server, queue, waiter, wire>>

\* ------------------------------------------------------------------ messages
Gone(w) == ~Alive(w) \/ waiter[w].state = "Left" \/ owner[w].hold = "over"

\* Queues.Deliver, and Client.granted in grant.go if nobody waits.
DeliverTicket(w, t) ==
  LET m == [to |-> w, ticket |-> t]
      holds == owner[w].hold \in {"holds", "releasing"} /\ Rule("holderIgnoresMessages")
      cleans == ~waiter[w].listed /\ ~holds /\ Rule("messageReleases")
  IN
  /\ m \in wire.messages /\ Alive(w) /\ world.listens[Home(w)]
  /\ wire' = [wire EXCEPT !.messages = @ \ {m}]
  /\ waiter' = IF ~waiter[w].listed THEN waiter
               ELSE [waiter EXCEPT ![w] = ReadMessages([@ EXCEPT !.unread = @ \cup {t}], w)]
  /\ owner' = [owner EXCEPT ![w].cleanup = IF cleans THEN Max(@, Releases) ELSE @]
  /\ UNCHANGED <<server, queue, world>>

LoseTicket(w, t) ==
  /\ [to |-> w, ticket |-> t] \in wire.messages /\ Fault("message")
  /\ wire' = [wire EXCEPT !.messages = @ \ {[to |-> w, ticket |-> t]}]
  /\ world' = [Silent(world) EXCEPT !.outlived = IF Gone(w) THEN @ \cup {w} ELSE @]
  /\ UNCHANGED <<server, queue, waiter, owner>>

\* An announcement wakes the head, which then asks: waiting.park.
Hear(p) ==
  LET q == queue[p] IN
  /\ p \in wire.told /\ world.alive[p] /\ world.listens[p]
  /\ q # <<>> => ~Asking(waiter[Head(q)])
  /\ wire' = [wire EXCEPT !.told = @ \ {p}]
  /\ waiter' = IF q = <<>> THEN waiter ELSE [waiter EXCEPT ![Head(q)] = Wake(@, Looks)]
  /\ UNCHANGED <<server, queue, owner, world>>

\* A connection ends, with the messages on it. After the next subscription all heads look.
Disconnect(p) ==
  /\ world.listens[p] /\ world.alive[p] /\ Fault("connection")
  /\ wire' = [wire EXCEPT !.told = @ \ {p}, !.messages = {m \in @ : Home(m.to) # p}]
  /\ world' = [Silent(world) EXCEPT !.listens[p] = FALSE,
       !.outlived = @ \cup {w \in Waiters : Home(w) = p /\ Gone(w) /\
                            \E m \in wire.messages : m.to = w}]
  /\ UNCHANGED <<server, queue, waiter, owner>>

Subscribe(p) ==
  /\ ~world.listens[p] /\ world.alive[p]
  /\ world' = [world EXCEPT !.listens[p] = TRUE]
  /\ wire' = [wire EXCEPT !.told = @ \cup {p}]
  /\ UNCHANGED <<server, queue, waiter, owner>>

\* A process dies. Only leases end what it has.
Die(p) ==
  /\ p \in Mortal /\ world.alive[p] /\ Fault("death")
  /\ world' = [Silent(world) EXCEPT !.alive[p] = FALSE, !.listens[p] = FALSE,
                                    !.outlived = @ \cup {w \in Waiters : Home(w) = p}]
  /\ wire' = [wire EXCEPT !.told = @ \ {p}, !.messages = {m \in @ : Home(m.to) # p}]
  /\ UNCHANGED <<server, queue, waiter, owner>>

\* ------------------------------------------------------------------ leases
Ended(s) ==
  IF s.holder = Java THEN [s EXCEPT !.holder = None]
  ELSE [s EXCEPT !.ended[s.holder] = s.leases[s.holder], !.holder = None]

\* The lease of an owner that does not release the lock in time ends.
Expire ==
  /\ server.holder \in Waiters /\ ~Gone(server.holder) /\ Fault("lease")
  /\ server' = Ended(server)
  /\ world' = Silent(world)
  /\ UNCHANGED <<queue, waiter, owner, wire>>

\* The lease of an owner that cannot release the lock ends.
ExpireGhost ==
  /\ server.holder \in Waiters /\ Gone(server.holder) /\ server.holder \in world.outlived
  /\ server' = Ended(server)
  /\ world' = [world EXCEPT !.silent = TRUE]
  /\ UNCHANGED <<queue, waiter, owner, wire>>

\* Nobody has asked for 15 s.
ExpireWaiters ==
  /\ server.waiters # <<>>
  /\ Fault("waiters")
  /\ server' = [server EXCEPT !.waiters = <<>>]
  /\ world' = Silent(world)
  /\ UNCHANGED <<queue, waiter, owner, wire>>

\* ------------------------------------------------------------------ the stranger
\* It listens, asks when it is told that the lock is free, and announces its release.
JavaWaits ==
  /\ world.java = "out" /\ Stranger
  /\ world' = [world EXCEPT !.java = "waits", !.javaTold = TRUE]
  /\ UNCHANGED <<server, queue, waiter, owner, wire>>

JavaAsks ==
  /\ world.java = "waits" /\ world.javaTold
  /\ IF server.holder = None
     THEN /\ server' = [server EXCEPT !.holder = Java]
          /\ world' = [world EXCEPT !.java = "holds", !.javaTold = FALSE]
     ELSE world' = [world EXCEPT !.javaTold = FALSE] /\ UNCHANGED server
  /\ UNCHANGED <<queue, waiter, owner, wire>>

JavaReleases ==
  /\ world.java = "holds"
  /\ server' = [server EXCEPT !.holder = None]
  /\ world' = [world EXCEPT !.java = "over"]
  /\ wire' = [wire EXCEPT !.told = @ \cup {p \in Processes : world.listens[p]}]
  /\ UNCHANGED <<queue, waiter, owner>>

\* ------------------------------------------------------------------ the specification
Init ==
  /\ server = [holder |-> None, leases |-> [w \in Waiters |-> 0], ended |-> [w \in Waiters |-> 0],
               waiters |-> <<>>, issued |-> [w \in Waiters |-> 0]]
  /\ queue = [p \in Processes |-> <<>>]
  /\ waiter = [w \in Waiters |->
       [state |-> "Out", reason |-> Sleeps, ticket |-> 0, asked |-> 0, given |-> 0, unread |-> {},
        registered |-> FALSE, late |-> FALSE, listed |-> FALSE, newer |-> FALSE]]
  /\ owner = [w \in Waiters |->
       [remains |-> Nothing, hold |-> "none", since |-> 0, cleanup |-> NoCleanup]]
  /\ wire = [asks |-> [w \in Waiters |-> NoRequest], releases |-> [w \in Waiters |-> NoRelease],
             lateAsks |-> [w \in Waiters |-> None], lateReleases |-> [w \in Waiters |-> NoRelease],
             messages |-> {}, told |-> {}]
  /\ world = [listens |-> [p \in Processes |-> TRUE], alive |-> [p \in Processes |-> TRUE],
              java |-> "out", javaTold |-> FALSE, faults |-> 0, silent |-> FALSE, outlived |-> {}]

\* The tickets in the messages to an owner.
Told(w) == {m.ticket : m \in {n \in wire.messages : n.to = w}}
Deliver(w) == \E t \in Told(w) : DeliverTicket(w, t)
LoseMessage(w) == \E t \in Told(w) : LoseTicket(w, t)

Next ==
  \/ \E w \in Waiters :
       \/ Join(w) \/ Ask(w) \/ ExecuteAsk(w) \/ Acquire(w) \/ AcquireTooLate(w) \/ Refuse(w)
       \/ LoseReply(w) \/ Abandon(w) \/ LateAsk(w) \/ Accept(w) \/ Leave(w)
       \/ \E b \in BOOLEAN : Release(w, b) \/ ExecuteRelease(w, b) \/ CleanUp(w, b)
       \/ Settle(w) \/ LoseSettlement(w) \/ AbandonRelease(w) \/ LateRelease(w) \/ Lose(w)
       \/ GiveUpCleanup(w)
       \/ Deliver(w) \/ LoseMessage(w)
  \/ \E p \in Processes : Hear(p) \/ Disconnect(p) \/ Subscribe(p) \/ Die(p)
  \/ Expire \/ ExpireGhost \/ ExpireWaiters \/ JavaWaits \/ JavaAsks \/ JavaReleases

\* What is sent is executed, and what is due is done; but nobody has to join, to leave or to fail.
Fairness ==
  /\ \A w \in Waiters :
       /\ WF_vars(Ask(w)) /\ WF_vars(ExecuteAsk(w)) /\ WF_vars(Acquire(w))
       /\ WF_vars(AcquireTooLate(w)) /\ WF_vars(Refuse(w)) /\ WF_vars(Accept(w))
       /\ WF_vars(\E b \in BOOLEAN : Release(w, b))
       /\ WF_vars(\E b \in BOOLEAN : ExecuteRelease(w, b))
       /\ WF_vars(\E b \in BOOLEAN : CleanUp(w, b))
       /\ WF_vars(Settle(w)) /\ WF_vars(Lose(w)) /\ WF_vars(LateAsk(w)) /\ WF_vars(LateRelease(w))
       /\ WF_vars(Deliver(w))
  /\ \A p \in Processes : WF_vars(Subscribe(p)) /\ WF_vars(Hear(p))
  /\ WF_vars(ExpireGhost) /\ WF_vars(JavaAsks) /\ WF_vars(JavaReleases)

Spec == Init /\ [][Next]_vars /\ Fairness

\* ------------------------------------------------------------------ properties
Believes(w) == owner[w].hold = "holds" /\ Alive(w) /\ Trusted(w, owner[w].since)

\* Nobody believes in a lock that the server has given to another.
OneHolder == \A w \in Waiters : Believes(w) => server.holder = w

\* An owner that is gone has neither the lock nor a registration, or somebody is about to end that.
NoGhost ==
  \A w \in Waiters : Gone(w) /\ w \notin world.outlived /\ owner[w].cleanup = NoCleanup =>
    LET offered == \E v \in Waiters : wire.releases[v].phase # "none" /\ wire.releases[v].to = w
        told == \E m \in wire.messages : m.to = w
    IN /\ server.holder = w => told \/ (offered /\ waiter[w].state = "LeftOffered")
       /\ Registered(server, w) => offered /\ waiter[w].state = "LeftOffered"

\* As long as all messages arrive, no waiter sleeps beside a free lock, or its own.
NoMissedWakeUp ==
  ~world.silent => \A w \in Waiters :
    IsHead(w) /\ waiter[w].state = "Waiting" /\ waiter[w].reason \in {Sleeps, BecameHead} =>
      /\ server.holder = None => Home(w) \in wire.told
      /\ server.holder = w => Home(w) \in wire.told \/ \E m \in wire.messages : m.to = w

\* No release grants the lock past a client that can only hear announcements, except to its own
\* process; and that client does not sleep beside a free lock.
StrangersAreTold ==
  /\ world.java # "passed"
  /\ (~world.silent /\ world.java = "waits" /\ server.holder = None) => world.javaTold

\* A waiter that stays gets the lock.
WaiterIsServed ==
  \A w \in Waiters \ Leavers :
    waiter[w].state # "Out" ~> (owner[w].hold # "none" \/ ~Alive(w))

\* An owner that is gone does not keep the lock for ever.
GhostGoesAway ==
  \A w \in Waiters : (Gone(w) /\ server.holder = w) ~> (server.holder # w)

=============================================================================
