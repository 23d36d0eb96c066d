------------------------------- MODULE Lease -------------------------------
\* The lease of a lock and the deadline of its holder: what a client may trust while its clock and
\* the server's run at different speeds, requests and replies are late or lost, and the process
\* stops. It models package watchdog, and rlock's acquisition.go, extend.go, renew.go, release.go,
\* loss.go, leave.go and cleaner.go, with the scripts acquire.lua, renew.lua and release.lua.
\*
\* Time is counted down, never up, so that there are finitely many states and time has no end:
\*   left[o]     of the client's clock, until the deadline of o; -1 is any time after it
\*   granted[o]  of the server's clock, until the lease that o was given last ends
\*   slack       of the client's clock, until the server's may again gain or lose a tick
\* A request carries the deadline that its reply would give. One clock stands for those of all
\* clients: what is promised to an owner compares its own clock with the server's only.
\*
\* A renewal may be sent at any time, not just every third of the lease or when one is overdue or a
\* connection was lost: safety must not depend on that. Nor must it depend on which of several
\* renewals the server executes or replies to first. All owners
\* that are not in Owners are the holder "another", which takes the free lock and gives it back
\* whenever it likes. An owner has one acquisition at a time. Each acquisition has a name of its own
\* in Redis, but here an owner begins the next one only when nothing of the last is left; until then
\* another stands for it. Of the commands that nobody waits for any more, one for each owner may
\* still be executed.
\*
\* Left out: levels (a nested lock is an Extend, and shares the lease), waiting and handing over
\* (HandOver.tla), batches, Options.MaxHold, closing (a closed client's locks run out like those that
\* are left).

EXTENDS Integers, Sequences

CONSTANTS Owners,         \* of the lock
          May,            \* what may happen, of "renew", "extend", "leave", "stop", "lose", "stray",
                          \* "take away"
          Leases,         \* that owners may ask for explicitly
          WatchdogLease,  \* Options.WatchdogLease
          InFlight,       \* how many renewals of a lock may be under way at once
          K,              \* the server gains or loses at most one tick in K
          Without         \* the rules left out

VARIABLES holder, granted, slack,
          state,    \* of the acquisition, see rlock/states.go; "none" before there is one
          renews,   \* the watchdog is to renew it
          left,     \* until its deadline
          kept,     \* Redis may have kept it for longer than known: longestLease in acquisition.go
          process,  \* "runs", "stopped", or "waking": its code runs again, its timers not yet
          call,     \* the command of the caller: of acquire, extend or release
          renewals, \* the commands of the watchdog under way, oldest first
          stray,    \* a command that may be executed later, and whose reply nobody waits for
          late,     \* an acquire may be among those: a.late in acquisition.go
          cleanup,  \* what the cleaner is doing for the owner
          taken     \* the owner's lock was taken away by force

client == <<state, renews, left, kept, process, call, renewals, late, cleanup>>
vars == <<holder, granted, slack, state, renews, left, kept, process, call, renewals, stray, late,
          cleanup, taken>>

\* RULE countFromSend BREAKS DeadlineNeverAfterExpiry
\*   A lease is counted from the reply, but the server has counted since it executed the request.
\*   STEPS Acquire Execute Pass Reply
\*   WITH May = {}
\* RULE countOverdueFromSend BREAKS DeadlineNeverAfterExpiry
\*   The late reply to a renewal that another has followed is counted from when it comes. The server
\*   has counted since it executed that one, maybe before the next.
\*   STEPS Renew ExecuteRenewal Pass RenewalReply
\*   WITH May = {"renew"}; InFlight = 2
\* RULE driftMargin BREAKS NobodyTrustsWhatWasGivenOn
\*   The whole lease is trusted, but the server's clock is faster: it gives the lock to another.
\*   STEPS Acquire Execute Pass AnotherTakes
\*   WITH May = {}
\* RULE validReadsClock BREAKS NobodyTrustsWhatWasGivenOn
\*   Valid believes the timers. A process that was stopped continues, and they have not fired yet.
\*   STEPS Stop Pass AnotherTakes Continue
\*   WITH May = {"stop"}
\* RULE contextEndsAtDeadline BREAKS ContextEndsAtDeadline
\*   Nothing ends the context but the reply to a renewal. None comes.
\*   STEPS Acquire Execute Reply Pass
\*   WITH May = {"renew"}
\* RULE neverShorten BREAKS DeadlineNeverAfterExpiry
\*   A renewal sets the TTL of a lock that was extended for longer. The holder trusts the longer
\*   lease.
\*   STEPS Extend Execute ExecuteRenewal
\*   WITH May = {"renew", "extend"}
\* RULE renewOnlyOwn BREAKS DeadlineNeverAfterExpiry
\*   A renewal extends whatever lock is there. It reports another owner's as held.
\*   STEPS TakeAway AnotherTakes ExecuteRenewal RenewalReply
\*   WITH May = {"renew", "take away"}
\* RULE ignoreLateReply BREAKS ContextEndsAtDeadline
\*   The reply that the lock was acquired comes after the deadline that it gives, and begins a hold.
\*   STEPS Acquire Pass Reply
\*   WITH May = {}
\* RULE lossIsFinal BREAKS NobodyTrustsWhatWasGivenOn
\*   The lock is lost while a renewal is under way. Its reply revives the acquisition, whose lock the
\*   cleaner releases.
\*   STEPS Renew Pass ExecuteRenewal RenewalReply ExecuteCleanup AnotherTakes
\*   WITH May = {"renew"}
\* RULE validNeverComesBack BREAKS LostIsLost
\*   The reply to a renewal comes after the deadline, but before the timer: the process is slow, or
\*   was stopped. A hold that was found invalid is valid again.
\*   STEPS Renew Pass ExecuteRenewal RenewalReply
\*   WITH May = {"renew"}
\* RULE undoLateRenewal BREAKS NothingLeftBehind
\*   The deadline comes, and the server keeps the lock for longer, because it has executed a request
\*   late: the first one, or a renewal that the owner has not heard of. It keeps it for nobody.
\*   STEPS Acquire Execute Reply Pass Expire
\*   WITH May = {"renew"}
\* RULE cleanUnconfirmedRelease BREAKS NothingLeftBehind
\*   Nobody hears whether a release was executed, and nobody sends it again.
\*   STEPS Release GiveUp Fail
\*   WITH May = {"lose"}
\* RULE cleanUnknownAcquire BREAKS NothingLeftBehind
\*   The caller leaves before the reply that the lock was acquired, and nobody gives it back.
\*   STEPS Acquire Execute GiveUp
\*   WITH May = {"lose"}
\* RULE repeatCleanup BREAKS NothingLeftBehind
\*   A request that nobody waits for is executed after the cleanup, which is not repeated.
\*   STEPS Acquire GiveUp Fail CleanUp ExecuteCleanup ExecuteStray
\*   WITH May = {"lose", "stray"}
\* RULE cleanLateRequest BREAKS NothingLeftBehind
\*   A lock is asked for twice, because the first request has no reply. The second one is refused, or
\*   what it took is released. Then the first one is executed.
\*   STEPS Acquire AskAgain Execute Reply ExecuteStray
\*   WITH May = {"lose", "stray"}
\* RULE renewOnlyWatched BREAKS LockBecomesFree
\*   The watchdog goes on to renew what was left.
\*   STEPS Acquire Execute Reply Leave Renew ExecuteRenewal
\*   WITH May = {"renew", "leave"}
Rule(r) == r \notin Without

Can(what) == what \in May

\* Strays has the choices whether a command that nobody waits for may be executed later.
Strays == {FALSE} \cup (IF Can("stray") THEN {TRUE} ELSE {})

None == [do |-> "none"]
Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b

\* watchdog.Drift. In the code K is 100, and 2 ms are added, because a store counts in whole
\* milliseconds: here the division rounds up instead.
Drift(lease) == IF Rule("driftMargin") THEN (lease + K - 1) \div K ELSE 0

\* Request is a command that is sent now. left is what it gives: watchdog.Deadline.
Request(do, lease) ==
    [do |-> do, at |-> "sent", lease |-> lease, left |-> lease - Drift(lease), waits |-> TRUE]

Init ==
    /\ holder = "nobody"
    /\ granted = [o \in Owners |-> 0]
    /\ slack = 0
    /\ state = [o \in Owners |-> "none"]
    /\ renews = [o \in Owners |-> FALSE]
    /\ left = [o \in Owners |-> 0]
    /\ kept = [o \in Owners |-> FALSE]
    /\ process = [o \in Owners |-> "runs"]
    /\ call = [o \in Owners |-> None]
    /\ renewals = [o \in Owners |-> <<>>]
    /\ stray = [o \in Owners |-> None]
    /\ late = [o \in Owners |-> FALSE]
    /\ cleanup = [o \in Owners |-> "none"]
    /\ taken = [o \in Owners |-> FALSE]

-----------------------------------------------------------------------------
\* What owners say of their locks.

\* Hold.Valid
Valid(o) == state[o] = "active" /\ (Rule("validReadsClock") => left[o] > 0)

\* Hold.Context and Hold.Done: as long as the acquisition lasts.
Lasts(o) == state[o] = "active"

Clean(o) == cleanup[o] = "none"

\* Settled reports whether o holds nothing, and nothing is under way for it.
Settled(o) ==
    /\ state[o] \notin {"active", "releasing"}
    /\ call[o] = None /\ renewals[o] = <<>> /\ stray[o] = None /\ Clean(o)

\* UnderWay reports whether o has an nth renewal under way.
UnderWay(o, n) == n <= Len(renewals[o])

\* Running reports whether the code of o's process runs.
Running(o) == process[o] # "stopped"

-----------------------------------------------------------------------------
\* Time.

Older(n, d) == Max(n - d, -1)

OlderRequest(r, d) ==
    IF r = None \/ r.do = "release" \/ ~r.waits \/ (r.at # "sent" /\ ~Rule("countFromSend")) THEN r
    ELSE IF Rule("countFromSend") THEN [r EXCEPT !.left = Older(@, d)] ELSE r

\* Due reports whether a timer of o has fired. Time does not pass before it has been handled.
Due(o) ==
    \/ process[o] = "waking"
    \/ process[o] = "runs" /\ state[o] = "active" /\ left[o] <= 0 /\ Rule("contextEndsAtDeadline")

\* Pass: d ticks pass for the clients, and gain more or less for the server.
Pass(d, gain) ==
    /\ \A o \in Owners : ~Due(o)
    /\ gain # 0 => slack = 0
    /\ slack' = IF gain # 0 THEN Max(K - d, 0) ELSE Max(slack - d, 0)
    /\ left' = [o \in Owners |->
                  IF state[o] \in {"active", "releasing"} THEN Older(left[o], d) ELSE left[o]]
    /\ call' = [o \in Owners |-> OlderRequest(call[o], d)]
    /\ renewals' = [o \in Owners |-> [n \in DOMAIN renewals[o] |-> OlderRequest(renewals[o][n], d)]]
    /\ granted' = [o \in Owners |-> Max(granted[o] - (d + gain), 0)]
    /\ holder' = IF holder \in Owners /\ granted'[holder] = 0 THEN "nobody" ELSE holder
    /\ UNCHANGED <<state, renews, kept, process, stray, late, cleanup, taken>>

\* Stop: the process stops, for as long as it likes or for ever; Continue: its code runs again, and
\* may ask Valid before its timers have run; Wake: they have.
Stop(o) ==
    /\ Can("stop")
    /\ process[o] = "runs"
    /\ state[o] = "active"
    /\ process' = [process EXCEPT ![o] = "stopped"]
    /\ UNCHANGED <<holder, granted, slack, state, renews, left, kept, call, renewals, stray, late,
                   cleanup, taken>>

Continue(o) ==
    /\ process[o] = "stopped"
    /\ process' = [process EXCEPT ![o] = "waking"]
    /\ UNCHANGED <<holder, granted, slack, state, renews, left, kept, call, renewals, stray, late,
                   cleanup, taken>>

Wake(o) ==
    /\ process[o] = "waking"
    /\ state[o] = "active" /\ left[o] <= 0 => ~Rule("contextEndsAtDeadline")
    /\ process' = [process EXCEPT ![o] = "runs"]
    /\ UNCHANGED <<holder, granted, slack, state, renews, left, kept, call, renewals, stray, late,
                   cleanup, taken>>

-----------------------------------------------------------------------------
\* The server.

\* Prolonged is the effect of PEXPIRE in the scripts on the holder's lease.
Prolonged(lease) ==
    IF holder = "another" THEN granted
    ELSE [granted EXCEPT ![holder] = IF Rule("neverShorten") THEN Max(@, lease) ELSE lease]

\* Served is what the server does with a command r of o. It says whether o has the lock; for a
\* release, whether it had it.
Served(o, r, says(_)) ==
    CASE r.do = "acquire" /\ holder = "nobody" ->  \* acquire.lua
           /\ holder' = o
           /\ granted' = [granted EXCEPT ![o] = r.lease]
           /\ says(TRUE)
      [] r.do = "acquire" /\ holder # "nobody" ->
           /\ granted' = IF holder = o THEN Prolonged(r.lease) ELSE granted
           /\ says(holder = o)
           /\ UNCHANGED holder
      [] r.do = "renew" ->                         \* renew.lua, also for an Extend
           LET held == IF Rule("renewOnlyOwn") THEN holder = o ELSE holder # "nobody"
           IN  /\ granted' = IF held THEN Prolonged(r.lease) ELSE granted
               /\ says(held)
               /\ UNCHANGED holder
      [] r.do = "release" ->                       \* release.lua
           /\ holder' = IF holder = o THEN "nobody" ELSE holder
           /\ granted' = IF holder = o THEN [granted EXCEPT ![o] = 0] ELSE granted
           /\ says(holder = o)

Answer(yes) == IF yes THEN "yes" ELSE "no"

Execute(o) ==
    /\ call[o] # None /\ call[o].at = "sent"
    /\ LET says(yes) == call' = [call EXCEPT ![o].at = Answer(yes)] IN Served(o, call[o], says)
    /\ UNCHANGED <<slack, state, renews, left, kept, process, renewals, stray, late, cleanup,
                   taken>>

ExecuteRenewal(o, n) ==
    /\ UnderWay(o, n) /\ renewals[o][n].at = "sent"
    /\ LET says(yes) == renewals' = [renewals EXCEPT ![o][n].at = Answer(yes)]
       IN  Served(o, renewals[o][n], says)
    /\ UNCHANGED <<slack, state, renews, left, kept, process, call, stray, late, cleanup, taken>>

\* ExecuteStray: what the network or a server that hung has kept back. Its reply goes nowhere.
ExecuteStray(o) ==
    /\ stray[o] # None
    /\ LET says(yes) == stray' = [stray EXCEPT ![o] = None] IN Served(o, stray[o], says)
    /\ UNCHANGED <<slack, client, taken>>

\* LoseStray: it was lost on its way.
LoseStray(o) ==
    /\ stray[o] # None
    /\ stray' = [stray EXCEPT ![o] = None]
    /\ UNCHANGED <<holder, granted, slack, client, taken>>

\* TakeAway: the lock is force-unlocked, deleted or evicted.
\* A late acquire could then take it again for the same acquisition, which would not notice. That is
\* left out: it is a risk of unlocking by force.
TakeAway ==
    /\ Can("take away")
    /\ holder \in Owners /\ ~late[holder]
    /\ holder' = "nobody"
    /\ taken' = [taken EXCEPT ![holder] = TRUE]
    /\ UNCHANGED <<granted, slack, client, stray>>

\* Another owner takes the lock, and releases it or lets its lease run out.
AnotherTakes ==
    /\ holder = "nobody"
    /\ holder' = "another"
    /\ UNCHANGED <<granted, slack, client, stray, taken>>

AnotherLeaves ==
    /\ holder = "another"
    /\ holder' = "nobody"
    /\ UNCHANGED <<granted, slack, client, stray, taken>>

-----------------------------------------------------------------------------
\* How an acquisition ends. The actions that use these say what else changes.

\* Ended has what an acquisition that has ended no longer needs.
Ended(o, s) ==
    /\ state' = [state EXCEPT ![o] = s]
    /\ left' = [left EXCEPT ![o] = 0]
    /\ renews' = [renews EXCEPT ![o] = ~Rule("renewOnlyWatched") /\ @]

\* ToClean adds a cleanup if it is wanted. repeat: a request may still be executed after it.
ToClean(o, wanted, repeat) ==
    cleanup' = [cleanup EXCEPT ![o] =
        IF repeat /\ Rule("repeatCleanup") THEN "repeat"
        ELSE IF (wanted \/ repeat) /\ @ \notin {"repeat", "resent", "redone"} THEN "queued" ELSE @]

\* Repeats reports whether a late acquire is cleaned up after: cleanUpLate.
Repeats(o) == late[o] /\ Rule("cleanLateRequest")

\* Lost: acquisition.lose.
Lost(o, wanted) ==
    /\ Ended(o, "lost")
    /\ ToClean(o, wanted, Repeats(o))
    /\ late' = [late EXCEPT ![o] = FALSE]

\* Expire: the deadline comes, or a process that was stopped finds it over: schedule in
\* watchdog/schedule.go, and acquisition.lose. If a renewal or an Extend may have kept the lock, the
\* cleaner gives it back.
Expire(o) ==
    /\ Running(o)
    /\ state[o] = "active"
    /\ left[o] <= 0
    /\ Rule("contextEndsAtDeadline")
    /\ Lost(o, kept[o] /\ Rule("undoLateRenewal"))
    /\ process' = [process EXCEPT ![o] = "runs"]
    /\ UNCHANGED <<holder, granted, slack, kept, call, renewals, stray, taken>>

-----------------------------------------------------------------------------
\* The calls of an owner. A release has no lease: that field says whether it was sent before.
First == 0
Again == 1

\* Acquire: Lock.TryLock sends a request.
Acquire(o, lease, renew) ==
    /\ Running(o)
    /\ Settled(o) /\ holder # o /\ ~late[o]
    /\ renew => Can("renew")
    /\ call' = [call EXCEPT ![o] = Request("acquire", lease)]
    /\ renews' = [renews EXCEPT ![o] = renew]
    /\ state' = [state EXCEPT ![o] = "none"]
    /\ kept' = [kept EXCEPT ![o] = FALSE]
    /\ taken' = [taken EXCEPT ![o] = FALSE]
    /\ UNCHANGED <<holder, granted, slack, left, process, renewals, stray, late, cleanup>>

\* Extend: Hold.Extend sends a renewal of its own.
Extend(o, lease) ==
    /\ Can("extend")
    /\ Running(o)
    /\ state[o] = "active" /\ call[o] = None /\ Valid(o)
    /\ call' = [call EXCEPT ![o] = Request("renew", lease)]
    /\ kept' = [kept EXCEPT ![o] = TRUE]
    /\ UNCHANGED <<holder, granted, slack, state, renews, left, process, renewals, stray, late,
                   cleanup, taken>>

\* Release: Hold.Unlock. After the deadline that is a loss, and nothing is sent but the cleanup:
\* releaseLevel in release.go.
Release(o) ==
    /\ Running(o)
    /\ state[o] = "active" /\ call[o] = None
    /\ IF left[o] > 0
       THEN /\ state' = [state EXCEPT ![o] = "releasing"]
            /\ renews' = [renews EXCEPT ![o] = ~Rule("renewOnlyWatched") /\ @]
            /\ call' = [call EXCEPT ![o] = [Request("release", First) EXCEPT !.left = 0]]
            /\ UNCHANGED <<left, late, cleanup>>
       ELSE /\ Lost(o, TRUE)
            /\ UNCHANGED call
    /\ UNCHANGED <<holder, granted, slack, kept, process, renewals, stray, taken>>

\* Leave: Hold.Leave.
Leave(o) ==
    /\ Can("leave")
    /\ Running(o)
    /\ state[o] = "active" /\ call[o] = None
    /\ Ended(o, "left")
    /\ UNCHANGED <<holder, granted, slack, kept, process, call, renewals, stray, late, cleanup,
                   taken>>

\* Extended is what a reply does to the deadline: watchdog.Extend and acquisition.extended, which
\* find out if it has passed.
Extended(o, until) ==
    IF left[o] > 0 \/ ~Rule("validNeverComesBack")
    THEN /\ left' = [left EXCEPT ![o] = Max(@, until)]
         /\ UNCHANGED <<state, renews, cleanup, late>>
    ELSE Lost(o, kept[o] /\ Rule("undoLateRenewal"))

\* Reply: a caller gets the reply to its command or, when the caller has left, the worker that waits
\* for it does: handleLateReply in attempt.go and release.go.
Reply(o) ==
    LET r == call[o]
        yes == r.at = "yes"
    IN
    /\ Running(o)
    /\ r # None /\ r.at # "sent"
    /\ call' = [call EXCEPT ![o] = None]
    /\ CASE r.do = "acquire" /\ r.waits /\ yes /\ (r.left > 0 \/ ~Rule("ignoreLateReply")) ->
              /\ state' = [state EXCEPT ![o] = "active"]
              /\ left' = [left EXCEPT ![o] = r.left]
              /\ kept' = [kept EXCEPT ![o] = renews[o]]
              /\ UNCHANGED <<renews, cleanup, late>>
         [] r.do = "acquire" /\ (r.waits => ~yes \/ (r.left <= 0 /\ Rule("ignoreLateReply"))) ->
              /\ renews' = [renews EXCEPT ![o] = FALSE]
              /\ ToClean(o, yes /\ Rule("cleanUnknownAcquire"), Repeats(o))
              /\ late' = [late EXCEPT ![o] = FALSE]
              /\ UNCHANGED <<state, left, kept>>
         [] r.do = "renew" /\ r.waits /\ state[o] = "active" ->
              /\ IF yes THEN Extended(o, r.left) ELSE Lost(o, FALSE)
              /\ UNCHANGED kept
         [] r.do = "renew" /\ (r.waits => state[o] # "active") ->
              /\ ToClean(o, yes /\ state[o] = "lost", FALSE)
              /\ UNCHANGED <<state, renews, left, kept, late>>
         [] r.do = "release" /\ r.waits ->
              \* handleReply: an earlier one, whose reply was lost, may have been the release.
              /\ Ended(o, IF yes \/ (r.lease = Again /\ left[o] > 0) THEN "released" ELSE "lost")
              /\ ToClean(o, FALSE, Repeats(o))
              /\ late' = [late EXCEPT ![o] = FALSE]
              /\ UNCHANGED kept
         [] r.do = "release" /\ ~r.waits ->
              /\ Ended(o, "released")
              /\ UNCHANGED <<kept, cleanup, late>>
    /\ UNCHANGED <<holder, granted, slack, process, renewals, stray, taken>>

\* GiveUp: the caller's time is over, and it leaves. A worker goes on waiting for the reply.
GiveUp(o) ==
    LET r == call[o] IN
    /\ Can("lose")
    /\ Running(o)
    /\ r # None /\ r.waits
    /\ call' = [call EXCEPT ![o].waits = FALSE, ![o].left = 0]
    /\ IF r.do = "renew"
       THEN UNCHANGED <<state, renews, left, cleanup, late>>
       ELSE /\ Ended(o, IF r.do = "release" THEN "unconfirmed" ELSE "none")
            /\ ToClean(o, FALSE, Repeats(o))
            /\ late' = [late EXCEPT ![o] = FALSE]
    /\ UNCHANGED <<holder, granted, slack, kept, process, renewals, stray, taken>>

\* Strayed leaves a command that nobody waits for, if it may still be executed.
Strayed(o, r, may) ==
    /\ may => r.at = "sent" /\ stray[o] = None
    /\ stray' = IF may THEN [stray EXCEPT ![o] = [r EXCEPT !.left = 0]] ELSE stray

\* Fail: the worker gets no reply either, because the connection is lost.
Fail(o, may) ==
    LET r == call[o] IN
    /\ Running(o)
    /\ r # None /\ ~r.waits
    /\ Strayed(o, r, may)
    /\ call' = [call EXCEPT ![o] = None]
    /\ LET wanted == CASE r.do = "acquire" -> Rule("cleanUnknownAcquire")
                       [] r.do = "renew" -> state[o] = "lost"
                       [] r.do = "release" -> Rule("cleanUnconfirmedRelease")
       IN  ToClean(o, wanted, wanted /\ may /\ r.do = "acquire")
    /\ UNCHANGED <<holder, granted, slack, state, renews, left, kept, process, renewals, late,
                   taken>>

\* AskAgain: a command without a reply is sent once more, with the same name.
AskAgain(o, may) ==
    LET r == call[o] IN
    /\ Can("lose")
    /\ Running(o)
    /\ r # None /\ r.waits /\ r.do # "renew"
    /\ Strayed(o, r, may)
    /\ call' = [call EXCEPT ![o] = IF r.do = "release" THEN [r EXCEPT !.at = "sent", !.lease = Again]
                                   ELSE Request(r.do, r.lease)]
    /\ late' = [late EXCEPT ![o] = @ \/ (r.do = "acquire" /\ may)]
    /\ UNCHANGED <<holder, granted, slack, state, renews, left, kept, process, renewals, cleanup,
                   taken>>

-----------------------------------------------------------------------------
\* The watchdog.

\* Renew: begin in watchdog/renew.go. It does not renew what is lost or about to be.
Renew(o) ==
    /\ process[o] = "runs"
    /\ renews[o] /\ Len(renewals[o]) < InFlight
    /\ Rule("renewOnlyWatched") => state[o] = "active" /\ left[o] > 0
    /\ state[o] # "none"
    /\ renewals' = [renewals EXCEPT ![o] = Append(@, Request("renew", WatchdogLease))]
    /\ UNCHANGED <<holder, granted, slack, state, renews, left, kept, process, call, stray, late,
                   cleanup, taken>>

Removed(seq, n) == SubSeq(seq, 1, n - 1) \o SubSeq(seq, n + 1, Len(seq))

\* RenewalReply: the outcome Held or Gone, of any renewal under way. It is ignored unless the lease
\* is live.
RenewalReply(o, n) ==
    LET r == renewals[o][n]
        overdue == n < Len(renewals[o])
        until == IF overdue /\ ~Rule("countOverdueFromSend")
                 THEN Request("renew", WatchdogLease).left ELSE r.left
    IN
    /\ Running(o)
    /\ UnderWay(o, n) /\ r.at \in {"yes", "no"}
    /\ renewals' = [renewals EXCEPT ![o] = Removed(@, n)]
    /\ CASE r.at = "no" /\ state[o] = "active" -> Lost(o, FALSE)
         [] r.at = "yes" /\ state[o] = "active" /\ (left[o] > 0 \/ ~Rule("validNeverComesBack")) ->
              /\ left' = [left EXCEPT ![o] = Max(@, until)]
              /\ UNCHANGED <<state, renews, cleanup, late>>
         [] r.at = "yes" /\ state[o] = "lost" /\ r.left > 0 /\ ~Rule("lossIsFinal") ->
              /\ state' = [state EXCEPT ![o] = "active"]
              /\ left' = [left EXCEPT ![o] = r.left]
              /\ UNCHANGED <<renews, cleanup, late>>
         [] OTHER -> UNCHANGED <<state, renews, left, cleanup, late>>
    /\ UNCHANGED <<holder, granted, slack, kept, process, call, stray, taken>>

\* SendAgain: a renewal has lost its connection. The server has executed it, or never will. It is
\* sent once more, and its lease still counts from the first time: delivery.again in transport/worker.go.
SendAgain(o, n) ==
    /\ Can("lose")
    /\ Running(o)
    /\ UnderWay(o, n) /\ renewals[o][n].left > 0
    /\ renewals' = [renewals EXCEPT ![o][n].at = "sent"]
    /\ UNCHANGED <<holder, granted, slack, state, renews, left, kept, process, call, stray, late,
                   cleanup, taken>>

\* RenewalFails: an error, or no reply before the lease that it would give is over. Another one may
\* be sent.
RenewalFails(o, n, may) ==
    /\ Can("lose")
    /\ Running(o)
    /\ UnderWay(o, n)
    /\ Strayed(o, renewals[o][n], may)
    /\ renewals' = [renewals EXCEPT ![o] = Removed(@, n)]
    /\ UNCHANGED <<holder, granted, slack, state, renews, left, kept, process, call, late, cleanup,
                   taken>>

-----------------------------------------------------------------------------
\* The cleaner. A cleanup is "queued", then "sent", then "done" once it was executed; or, as long as
\* a request may be executed after it, "repeat", "resent" and "redone".

CleanUp(o) ==
    /\ Running(o)
    /\ cleanup[o] \in {"queued", "repeat"}
    /\ cleanup' = [cleanup EXCEPT ![o] =
                     IF @ = "repeat" /\ stray[o] # None THEN "resent" ELSE "sent"]
    /\ UNCHANGED <<holder, granted, slack, state, renews, left, kept, process, call, renewals,
                   stray, late, taken>>

ExecuteCleanup(o) ==
    /\ cleanup[o] \in {"sent", "resent"}
    /\ LET says(yes) ==
             cleanup' = [cleanup EXCEPT ![o] = IF @ = "resent" THEN "redone" ELSE "done"]
       IN  Served(o, [do |-> "release"], says)
    /\ UNCHANGED <<slack, state, renews, left, kept, process, call, renewals, stray, late, taken>>

CleanupReply(o) ==
    /\ Running(o)
    /\ cleanup[o] \in {"done", "redone"}
    /\ cleanup' = [cleanup EXCEPT ![o] = IF @ = "redone" THEN "repeat" ELSE "none"]
    /\ UNCHANGED <<holder, granted, slack, state, renews, left, kept, process, call, renewals,
                   stray, late, taken>>

\* CleanupFails: it is sent again.
CleanupFails(o) ==
    /\ Can("lose")
    /\ Running(o)
    /\ cleanup[o] \in {"sent", "resent", "done", "redone"}
    /\ cleanup' = [cleanup EXCEPT ![o] = IF @ \in {"resent", "redone"} THEN "repeat" ELSE "queued"]
    /\ UNCHANGED <<holder, granted, slack, state, renews, left, kept, process, call, renewals,
                   stray, late, taken>>

-----------------------------------------------------------------------------
Next ==
    \/ \E gain \in -1..1 : Pass(1, gain)
    \/ AnotherTakes \/ AnotherLeaves \/ TakeAway
    \/ \E o \in Owners :
         \/ \E lease \in Leases : Acquire(o, lease, FALSE) \/ Extend(o, lease)
         \/ Acquire(o, WatchdogLease, TRUE)
         \/ Execute(o) \/ Reply(o) \/ Release(o) \/ Leave(o)
         \/ Stop(o) \/ Continue(o) \/ Wake(o) \/ Expire(o)
         \/ GiveUp(o)
         \/ \E may \in Strays : Fail(o, may) \/ AskAgain(o, may)
         \/ ExecuteStray(o) \/ LoseStray(o)
         \/ Renew(o)
         \/ \E n \in 1..InFlight :
              \/ ExecuteRenewal(o, n) \/ RenewalReply(o, n) \/ SendAgain(o, n)
              \/ \E may \in Strays : RenewalFails(o, n, may)
         \/ CleanUp(o) \/ ExecuteCleanup(o) \/ CleanupReply(o) \/ CleanupFails(o)

Safe == Init /\ [][Next]_vars

Spec ==
    /\ Safe
    /\ WF_vars(\E gain \in -1..1 : Pass(1, gain))
    /\ \A o \in Owners : WF_vars(Expire(o)) /\ WF_vars(Wake(o))

-----------------------------------------------------------------------------
GivenOn(o) == holder \notin {o, "nobody"} /\ ~taken[o]

\* No owner trusts a lock that the server has given to another: neither does Valid say so whenever
\* the process runs, nor does the context once its timers run, except in the instant of the deadline
\* itself, in which the timer is handled.
NobodyTrustsWhatWasGivenOn ==
    \A o \in Owners : GivenOn(o) =>
        ~(Running(o) /\ Valid(o)) /\ ~(process[o] = "runs" /\ Lasts(o) /\ left[o] # 0)

\* Unless the process is stopped, the context does not outlast the deadline.
ContextEndsAtDeadline ==
    \A o \in Owners : process[o] = "runs" /\ Lasts(o) => left[o] >= 0

\* The server never lets a lease end before the deadline that its holder counts with.
DeadlineNeverAfterExpiry ==
    \A o \in Owners : Lasts(o) /\ left[o] > 0 => granted[o] >= left[o]

\* Once nothing is under way for an owner that holds nothing, the server does not keep the lock for
\* it for longer than a lease that the owner knew of.
NothingLeftBehind ==
    \A o \in Owners : Settled(o) /\ holder = o =>
        state[o] = "left" \/ (state[o] = "lost" /\ ~kept[o])

\* What Valid has denied it never says again.
LostIsLost ==
    [][\A o \in Owners : (state[o] = "active" /\ left[o] <= 0) \/ state[o] = "lost" =>
         state'[o] # "active" \/ left'[o] <= 0]_vars

\* Wants reports whether o has the lock, or goes on asking for it.
Wants(o) == process[o] = "runs" /\ (Lasts(o) \/ (call[o] # None /\ call[o].waits))

\* Whatever a holder does, even if it stops for ever: the lock becomes free, unless it is wanted.
LockBecomesFree ==
    \A o \in Owners : holder = o /\ ~Wants(o) ~> holder # o \/ Wants(o)

TypeOK ==
    /\ holder \in Owners \cup {"nobody", "another"}
    /\ state \in [Owners -> {"none", "active", "releasing", "released", "unconfirmed", "lost",
                             "left"}]
    /\ process \in [Owners -> {"runs", "stopped", "waking"}]
=============================================================================
