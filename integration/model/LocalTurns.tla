----------------------------- MODULE LocalTurns -----------------------------
\* Local turns: a release that passes the lock to the head of the local queue without a command.
\* The code is internal/waitqueue/turn.go and rlock/turn.go. HandOver.tla has releases through Redis
\* with all that may happen to their messages. Lease.tla says what a deadline is worth.
\*
\* The goroutines of one process each wait once, and hold the lock once. Each has a name of its own
\* for Redis. A turn passes the name of the lock on instead, so a run of turns has one name. Another
\* process has one waiter. A command is executed when it is sent, and its reply arrives. Or its
\* caller gives up, and Redis executes the command at any time later. Grant messages arrive at any
\* time.
\*
\* Time. As in HandOver.tla, Redis numbers the leases of a name. A holder trusts the lock until a
\* lease ends that may have begun after the command from which the holder counts. Tick ends the
\* 100 ms in which turns are allowed, for all runs that have begun.
\*
\* Accept is one step. In the code the hold begins, so that ForceUnlock lists it, before takeTurn
\* looks for a ForceUnlock. Otherwise a ForceUnlock between the two would miss the hold.
\*
\* Left out:
\*   - Renewals that find the lock. They change nothing here, even if they are late.
\*   - How much of a lease is left. A waiter may decline a turn at any time.
\*   - Explicit leases, other kinds of locks and parts of a RedLock, which no turn passes on.
\* Bounds: the number of goroutines, and Faults.

EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Goroutines,  \* any of "g1", "g2", "g3", who join the queue in this order
  Bound,       \* how many turns there are in a row
  Kinds,       \* the faults that may happen: see Fault
  Faults,      \* how many of them
  Without      \* the rules that are left out

VARIABLES
  server,   \* the lock and its registrations. long: its lease is longer than the watchdog's
  at,       \* goroutine -> what it waits for or holds, and what may be in Redis under its own name
  cleanup,  \* name -> the cleanup that is due
  wire,     \* grant messages and late commands
  world     \* ForceUnlock, Close, and what went wrong

vars == <<server, at, cleanup, wire, world>>

Rule(r) == r \notin Without
None == "none"
Other == "q"  \* the waiter in the other process
Number(g) == CASE g = "g1" -> 1 [] g = "g2" -> 2 [] OTHER -> 3

\* ------------------------------------------------------------------ the rules
\* RULE leaseFromCommand BREAKS OneHolder
\*   The next holder counts the lease from the turn, and trusts the lock when it has ended in Redis.
\*   STEPS Try Turn Accept Expire
\*   WITH Goroutines = {"g1", "g2"}; Kinds = {"lease"}
\* RULE inTime BREAKS OneHolder
\*   Redis forgets the lock, and the turns go on for longer than promised.
\*   STEPS Forget Tick Turn Accept
\*   WITH Goroutines = {"g1", "g2"}; Kinds = {"forget", "time"}; Faults = 2
\* RULE bounded BREAKS Bounded
\*   The lock goes round in the process, by turns and by releases that prefer its waiters.
\*   STEPS Release Turn
\*   WITH Kinds = {}
\* RULE lateEndsRun BREAKS NoGhost
\*   A request of the holder may be executed late, and the lock is passed on. After the run has
\*   ended, the request takes the lock again for its name.
\*   STEPS GiveUpTry Release Turn Accept Release ExecuteLate
\*   WITH Kinds = {"late"}
\* RULE messageEndsRun BREAKS OneHolder
\*   A grant message is on its way to a waiter that got the lock by asking. It arrives between two
\*   holders, nobody seems to want the lock, and the client releases it.
\*   STEPS OtherReleases Ask Turn Deliver CleanUp Accept
\*   WITH Goroutines = {"g1", "g2"}; Kinds = {}
\* RULE registeredEndsRun BREAKS OneHolder
\*   The message is older: the lease that it grants has ended, and since then the waiter got the
\*   lock as the successor of a call that did not wait.
\*   STEPS Ask OtherReleases Expire Try Release Turn Deliver CleanUp Accept
\*   WITH Kinds = {"lease"}
\* RULE nestedEndsRun BREAKS AsHeld
\*   The count of the run is 2, or a late command sets it, while the next holder has one hold.
\*   STEPS Change Turn Accept
\*   WITH Kinds = {"nest"}
\* RULE extendedEndsRun BREAKS AsHeld
\*   The next holder has the lease that the earlier one has asked for.
\*   STEPS Change Turn Accept
\*   WITH Kinds = {"extend"}
\* RULE headNotLate BREAKS NoGhost
\*   A request of the next holder under its own name is executed after its turn.
\*   STEPS GiveUpTry Turn Accept Release ExecuteLate
\*   WITH Goroutines = {"g1", "g2"}; Kinds = {"late"}
\* RULE headNotRegistered BREAKS NoGhost
\*   A waiter is registered under its own name, and gets the lock by a turn. Its registration stays.
\*   STEPS Ask Turn Accept Release
\*   WITH Goroutines = {"g1", "g2"}; Kinds = {}
\* RULE askKeepsTurn BREAKS NoGhost
\*   A head is about to ask when it gets a turn. It asks, and forgets the turn.
\*   STEPS Turn Ask
\*   WITH Goroutines = {"g1", "g2"}; Kinds = {}
\* RULE leaverCleansUp BREAKS NoGhost
\*   A waiter leaves with a turn, and nobody releases the lock.
\*   STEPS Turn Leave
\*   WITH Goroutines = {"g1", "g2"}; Kinds = {}
\* RULE declineCleansUp BREAKS NoGhost
\*   A waiter declines a turn, and nobody releases the lock.
\*   STEPS Turn Decline
\*   WITH Goroutines = {"g1", "g2"}; Kinds = {}
\* RULE notWhileForced BREAKS OneHolder
\*   A turn is accepted while a ForceUnlock is under way, which has listed the holders before.
\*   STEPS Turn Force Accept
\*   WITH Goroutines = {"g1", "g2"}; Kinds = {"force"}
\* RULE notOnceForced BREAKS OneHolder
\*   A turn is accepted after a ForceUnlock that has ended only the holds that it knew.
\*   STEPS Turn Force Forced Accept
\*   WITH Goroutines = {"g1", "g2"}; Kinds = {"force"}
\* RULE dropCleansUp BREAKS NoGhost
\*   A turn is dropped because of a ForceUnlock, which fails. Nobody releases the lock.
\*   STEPS Turn Force Drop
\*   WITH Goroutines = {"g1", "g2"}; Kinds = {"force"}
\* RULE closingDeclines BREAKS NoGhost
\*   A turn is accepted after Close has released the holds. Its release sends nothing.
\*   STEPS Turn Close Accept Closed ReleaseInVain
\*   WITH Goroutines = {"g1", "g2"}; Kinds = {"close"}

\* ------------------------------------------------------------------ the server
Registered(s, n) == \E i \in DOMAIN s.waiters : s.waiters[i] = n
Withdraw(s, n) == [s EXCEPT !.waiters = SelectSeq(@, LAMBDA x : x # n)]
Register(s, n) == IF Registered(s, n) THEN s ELSE [s EXCEPT !.waiters = Append(@, n)]
Free(s) == [s EXCEPT !.holder = None, !.count = 0, !.long = FALSE]
Give(s, n) == IF n = Other THEN [Free(s) EXCEPT !.holder = n, !.count = 1]
              ELSE [Free(s) EXCEPT !.holder = n, !.count = 1, !.leases[n] = @ + 1]

\* acquire.lua
AfterAsk(s, n, registers) ==
  IF s.holder = None THEN Withdraw(Give(s, n), n)
  ELSE IF s.holder = n THEN [Withdraw(s, n) EXCEPT !.count = 1, !.leases[n] = @ + 1]
  ELSE IF registers THEN Register(s, n) ELSE s

\* release.lua, when the leaving name has the lock: the server afterwards, who is told, and whether
\* the successor, to, has the lock.
Passed(s, leaving, to, first) ==
  LET free == Free(Withdraw(s, leaving))
      oldest == Head(free.waiters)
      given == Withdraw(Give(free, oldest), oldest)
  IN IF to # None /\ (first \/ free.waiters = <<>>)
     THEN [server |-> Withdraw(Give(free, to), to), told |-> None, outcome |-> "ToSuccessor"]
     ELSE IF free.waiters = <<>> THEN [server |-> free, told |-> None, outcome |-> "ToAll"]
     ELSE IF to \notin {None, oldest}
     THEN [server |-> Register(given, to), told |-> oldest, outcome |-> "Registered"]
     ELSE [server |-> given, told |-> oldest, outcome |-> "ToAll"]

Sent(w, p) ==
  IF p.told \in {None, Other} THEN w
  ELSE [w EXCEPT !.messages = @ \cup {[to |-> p.told, lease |-> p.server.leases[p.told]]}]

\* ------------------------------------------------------------------ the process
Now(n) == server.leases[n] + 1
Trusted(n, since) == server.ended[n] < since
Waiting == {g \in Goroutines : at[g].state \in {"waits", "granted"}}
IsHead(g) == g \in Waiting /\ \A h \in Waiting : Number(h) >= Number(g)
Heads == {g \in Goroutines : IsHead(g) /\ at[g].state = "waits"}
Successor == IF Heads = {} THEN None ELSE CHOOSE g \in Heads : TRUE
Uses(g, n) == at[g].state \in {"granted", "holds"} /\ at[g].name = n
Open == world.close = "open"
Fault(kind) == kind \in Kinds /\ world.faults < Faults
Failed(x) == [x EXCEPT !.faults = @ + 1]
InTurn(g) == \A h \in Goroutines : Number(h) < Number(g) => at[h].state # "out"

Max(a, b) == IF a > b THEN a ELSE b
\* Cleanups that are due, ordered.
NoCleanup == 0
Once == 1
Repeats == 2  \* again and again, while a command may be executed late
CleanedUp(n, how) == [cleanup EXCEPT ![n] = Max(@, how)]
AfterHold(x) == IF x.late THEN Repeats ELSE NoCleanup

\* A goroutine with the lock: the name, from when the lease counts, and the streak. age is "new" for
\* 100 ms from HereSince, then "old", or "unknown". changed: the count or the lease in Redis may not
\* be the usual ones. heard: a grant message for the name may arrive. doubt: Redis had forgotten the
\* lock for less than 100 ms when the goroutine was given it.
Holding(x, n, since, here, age) ==
  [x EXCEPT !.state = "holds", !.name = n, !.since = since, !.here = here, !.age = age,
            !.forced = FALSE, !.doubt = FALSE, !.changed = FALSE, !.heard = FALSE]
Over(x) == [x EXCEPT !.state = "over", !.name = None, !.since = 0, !.here = 0, !.age = "unknown",
                     !.forced = FALSE, !.changed = FALSE, !.heard = FALSE, !.doubt = FALSE,
                     !.registered = FALSE, !.late = FALSE, !.asked = 0]

\* Redis has decided who is next.
Decided(is) == world' = IF is THEN [world EXCEPT !.turns = 0] ELSE world

\* A first try, outside the queue, without a registration. Beside a queue it is the only one.
Try(g) ==
  /\ at[g].state = "out" /\ InTurn(g) /\ Open
  /\ server' = AfterAsk(server, g, FALSE)
  /\ at' = [at EXCEPT ![g] = IF server'.holder = g THEN Holding(@, g, Now(g), 0, "new")
                             ELSE [@ EXCEPT !.state = IF Waiting = {} THEN "waits" ELSE "over"]]
  /\ Decided(server'.holder = g)
  /\ UNCHANGED <<cleanup, wire>>

\* Its caller gives up, and joins the queue.
GiveUpTry(g) ==
  /\ at[g].state = "out" /\ InTurn(g) /\ Waiting = {} /\ Open /\ Fault("late")
  /\ wire' = [wire EXCEPT !.late = @ \cup {[do |-> "ask", name |-> g, to |-> None]}]
  /\ at' = [at EXCEPT ![g].state = "waits", ![g].late = TRUE]
  /\ world' = Failed(world)
  /\ UNCHANGED <<server, cleanup>>

Join(g) ==
  /\ at[g].state = "out" /\ InTurn(g) /\ Open
  /\ at' = [at EXCEPT ![g].state = "waits"]
  /\ UNCHANGED <<server, cleanup, wire, world>>

\* The head asks under its own name, and registers.
Ask(g) ==
  LET x == at[g]
      asked == [x EXCEPT !.state = "waits", !.name = None, !.registered = TRUE, !.asked = Now(g)]
  IN
  /\ IsHead(g) /\ Open /\ (x.state = "waits" \/ ~Rule("askKeepsTurn"))
  /\ server' = AfterAsk(server, g, TRUE)
  /\ at' = [at EXCEPT ![g] = IF server'.holder = g
                             THEN [Holding(asked, g, Now(g), 0, "new")
                                    EXCEPT !.heard = Rule("messageEndsRun")]
                             ELSE asked]
  /\ Decided(server'.holder = g)
  /\ UNCHANGED <<cleanup, wire>>

GiveUpAsk(g) ==
  /\ IsHead(g) /\ at[g].state = "waits" /\ Open /\ Fault("late")
  /\ wire' = [wire EXCEPT !.late = @ \cup {[do |-> "register", name |-> g, to |-> None]}]
  /\ at' = [at EXCEPT ![g].late = TRUE, ![g].registered = TRUE, ![g].asked = 0]
  /\ world' = Failed(world)
  /\ UNCHANGED <<server, cleanup>>

\* A release that is a local turn: acquisition.passOn and Queues.Pass.
Turn(g) ==
  LET x == at[g]
      to == Successor
      since == IF Rule("leaseFromCommand") THEN x.since ELSE Now(x.name)
  IN
  /\ x.state = "holds" /\ to # None /\ Open /\ Trusted(x.name, x.since)
  /\ x.here < Bound \/ ~Rule("bounded")
  /\ x.age = "new" \/ ~Rule("inTime")
  /\ ~x.late \/ ~Rule("lateEndsRun")
  /\ ~x.heard
  /\ x.changed => \/ "nest" \in Kinds /\ ~Rule("nestedEndsRun")
                  \/ "extend" \in Kinds /\ ~Rule("extendedEndsRun")
  /\ ~at[to].late \/ ~Rule("headNotLate")
  /\ ~at[to].registered \/ ~Rule("headNotRegistered")
  /\ at' = [at EXCEPT
       ![g] = Over(@),
       ![to] = [Holding(@, x.name, since, x.here + 1, x.age) EXCEPT !.state = "granted",
                          !.forced = x.forced, !.doubt = world.forgot = "just"]]
  /\ world' = [world EXCEPT !.turns = IF server.holder = x.name THEN @ + 1 ELSE @]
  /\ UNCHANGED <<server, cleanup, wire>>

\* attempt.takeTurn
Accept(g) ==
  LET x == at[g] IN
  /\ x.state = "granted" /\ Trusted(x.name, x.since) /\ world.close # "closed"
  /\ Open \/ ~Rule("closingDeclines")
  /\ world.force = "none" \/ ~Rule("notWhileForced")
  /\ ~x.forced \/ ~Rule("notOnceForced")
  /\ at' = [at EXCEPT ![g].state = "holds"]
  /\ UNCHANGED <<server, cleanup, wire, world>>

\* It will ask under its own name.
Decline(g) ==
  LET x == at[g] IN
  /\ x.state = "granted" /\ Open
  /\ cleanup' = CleanedUp(x.name, IF Rule("declineCleansUp") THEN Once ELSE NoCleanup)
  /\ at' = [at EXCEPT ![g] = [Over(@) EXCEPT !.state = "waits",
       !.registered = x.registered, !.late = x.late, !.asked = x.asked]]
  /\ UNCHANGED <<server, wire, world>>

\* The hold ends as lost as soon as it has begun.
Drop(g) ==
  LET x == at[g] IN
  /\ x.state = "granted" /\ Open /\ (world.force # "none" \/ x.forced)
  /\ cleanup' = CleanedUp(x.name, IF Rule("dropCleansUp") THEN Once ELSE NoCleanup)
  /\ at' = [at EXCEPT ![g] = Over(@)]
  /\ UNCHANGED <<server, wire, world>>

Leave(g) ==
  LET x == at[g]
      own == IF x.late THEN Repeats ELSE IF x.registered THEN Once ELSE NoCleanup
      turn == x.state = "granted" /\ Rule("leaverCleansUp")
  IN
  /\ g \in Waiting
  /\ cleanup' = [n \in Goroutines |->
       Max(cleanup[n], IF n = g THEN own ELSE IF turn /\ n = x.name THEN Once ELSE NoCleanup)]
  /\ at' = [at EXCEPT ![g] = Over(@)]
  /\ UNCHANGED <<server, wire, world>>

\* ------------------------------------------------------------------ the holder
\* A nested call, or an Extend for longer than the watchdog's lease: with its reply, or late.
Change(g, do, late) ==
  /\ at[g].state = "holds" /\ Open /\ Fault(do)
  /\ at' = [at EXCEPT ![g].changed = TRUE]
  /\ IF late THEN /\ wire' = [wire EXCEPT !.late = @ \cup
                                {[do |-> do, name |-> at[g].name, to |-> None]}]
                  /\ UNCHANGED server
     ELSE /\ server' = IF server.holder # at[g].name THEN server
                       ELSE IF do = "nest" THEN [server EXCEPT !.count = 2]
                       ELSE [server EXCEPT !.long = TRUE]
          /\ server.holder = at[g].name
          /\ UNCHANGED wire
  /\ world' = Failed(world)
  /\ UNCHANGED cleanup

\* A release through Redis, with its reply.
Release(g) ==
  LET x == at[g]
      to == IF x.late THEN None ELSE Successor
      first == x.here < Bound /\ x.age # "old"
      here == IF first /\ x.age = "new" THEN x.here + 1 ELSE 1
  IN
  /\ x.state = "holds" /\ Trusted(x.name, x.since) /\ Open
  /\ IF server.holder # x.name
     THEN at' = [at EXCEPT ![g] = Over(@)] /\ UNCHANGED <<server, wire, world>>
     ELSE \E p \in {Passed(server, x.name, to, first)} :
       /\ server' = p.server
       /\ wire' = Sent(wire, p)
       /\ world' = [world EXCEPT !.turns = IF p.outcome = "ToSuccessor" /\ first THEN @ + 1 ELSE 0]
       /\ at' = [h \in Goroutines |->
            CASE h = g -> Over(at[h])
              [] h = to /\ p.outcome = "ToSuccessor" ->
                   [Holding(at[h], h, Now(h), here, "new")
                      EXCEPT !.heard = at[h].registered /\ Rule("registeredEndsRun")]
              [] h = to /\ p.outcome = "Registered" ->
                   [at[h] EXCEPT !.registered = TRUE, !.asked = Now(h)]
              [] OTHER -> at[h]]
  /\ cleanup' = CleanedUp(x.name, AfterHold(x))

\* The client is closed, so nothing is sent.
ReleaseInVain(g) ==
  /\ at[g].state = "holds" /\ world.close = "closed"
  /\ at' = [at EXCEPT ![g] = Over(@)]
  /\ UNCHANGED <<server, cleanup, wire, world>>

GiveUpRelease(g) ==
  LET x == at[g]
      to == IF x.late THEN None ELSE Successor
  IN
  /\ x.state = "holds" /\ Open /\ Trusted(x.name, x.since) /\ Fault("late")
  /\ wire' = [wire EXCEPT !.late = @ \cup {[do |-> "release", name |-> x.name, to |-> to]}]
  /\ at' = [h \in Goroutines |->
       CASE h = g -> Over(at[h])
         [] h = to -> [at[h] EXCEPT !.late = TRUE, !.registered = TRUE]
         [] OTHER -> at[h]]
  /\ cleanup' = CleanedUp(x.name, Max(Once, AfterHold(x)))
  /\ world' = Failed(world)
  /\ UNCHANGED server

\* The holder finds the lease over, or a renewal finds the lock gone.
Lose(g) ==
  LET x == at[g] IN
  /\ x.state = "holds" /\ (~Trusted(x.name, x.since) \/ server.holder # x.name)
  /\ at' = [at EXCEPT ![g] = Over(@)]
  /\ cleanup' = CleanedUp(x.name, Max(Once, AfterHold(x)))
  /\ UNCHANGED <<server, wire, world>>

\* ------------------------------------------------------------------ what comes late
Executed(c) ==
  /\ c \in wire.late
  /\ \E w \in {[wire EXCEPT !.late = @ \ {c}]}, p \in {Passed(server, c.name, c.to, TRUE)} :
       IF c.do \in {"ask", "register"}
       THEN server' = AfterAsk(server, c.name, c.do = "register") /\ wire' = w
       ELSE IF server.holder # c.name THEN wire' = w /\ UNCHANGED server
       ELSE CASE c.do = "nest" -> server' = [server EXCEPT !.count = 2] /\ wire' = w
              [] c.do = "extend" -> server' = [server EXCEPT !.long = TRUE] /\ wire' = w
              [] OTHER -> server' = p.server /\ wire' = Sent(w, p)
  /\ UNCHANGED <<at, cleanup, world>>

CleanUp(n) ==
  LET again == cleanup[n] = Repeats /\ \E c \in wire.late : n \in {c.name, c.to}
      p == Passed(server, n, None, FALSE)
  IN
  /\ cleanup[n] # NoCleanup /\ world.close # "closed"
  /\ cleanup' = [cleanup EXCEPT ![n] = IF again THEN Repeats ELSE NoCleanup]
  /\ IF server.holder = n THEN server' = p.server /\ wire' = Sent(wire, p)
     ELSE server' = Withdraw(server, n) /\ UNCHANGED wire
  /\ Decided(server.holder = n)
  /\ UNCHANGED at

\* Queues.Deliver, and Client.granted if nobody waits under this name. That Redis has forgotten the
\* lock since then is no matter of turns.
Delivered(m) ==
  LET g == m.to IN
  /\ m \in wire.messages /\ world.close # "closed"
  /\ wire' = [wire EXCEPT !.messages = @ \ {m}]
  /\ IF at[g].state = "waits" /\ at[g].registered
     THEN /\ at' = IF at[g].asked = 0 \/ m.lease < at[g].asked \/ ~Open THEN at
                   ELSE [at EXCEPT ![g] = [Holding(@, g, @.asked, 0, "unknown")
                                        EXCEPT !.heard = TRUE, !.doubt = server.holder # g]]
          /\ UNCHANGED cleanup
     ELSE /\ cleanup' = IF \E h \in Goroutines : at[h].state = "holds" /\ at[h].name = g
                        THEN cleanup ELSE CleanedUp(g, Once)
          /\ UNCHANGED at
  /\ UNCHANGED <<server, world>>

\* ------------------------------------------------------------------ what ends a lock
\* A lease ends.
Expire ==
  /\ server.holder \in Goroutines /\ Fault("lease")
  /\ server' = [Free(server) EXCEPT !.ended[server.holder] = server.leases[server.holder]]
  /\ world' = Failed(world)
  /\ UNCHANGED <<at, cleanup, wire>>

\* Redis forgets the lock, by FLUSHALL or a failover. Those that hold it cannot know.
Forget ==
  /\ Fault("forget") /\ server.holder # None /\ world.forgot = "no"
  /\ server' = [Free(server) EXCEPT !.waiters = <<>>]
  /\ at' = [g \in Goroutines |-> [at[g] EXCEPT !.doubt = @ \/ at[g].state \in {"granted", "holds"}]]
  /\ world' = [Failed(world) EXCEPT !.forgot = "just"]
  /\ UNCHANGED <<cleanup, wire>>

\* 100 ms pass.
Tick ==
  /\ Fault("time")
  /\ at' = [g \in Goroutines |-> [at[g] EXCEPT !.age = IF @ = "new" THEN "old" ELSE @]]
  /\ world' = [Failed(world) EXCEPT !.forgot = IF @ = "just" THEN "past" ELSE @]
  /\ UNCHANGED <<server, cleanup, wire>>

\* ForceUnlock by this client: it lists the holders, and the command is executed, or fails.
Force == \E executed \in BOOLEAN :
  /\ Fault("force") /\ world.force = "none" /\ Open
  /\ server' = IF executed THEN Free(server) ELSE server
  /\ world' = [Failed(world) EXCEPT
       !.force = IF executed THEN "executed" ELSE "failed",
       !.listed = IF executed THEN {g \in Goroutines : at[g].state = "holds"} ELSE {}]
  /\ UNCHANGED <<at, cleanup, wire>>

\* Its reply ends the listed holds.
Forced ==
  /\ world.force # "none"
  /\ at' = [g \in Goroutines |->
       IF g \in world.listed /\ at[g].state = "holds" THEN Over(at[g])
       ELSE [at[g] EXCEPT !.forced = @ \/ at[g].state \in {"granted", "holds"}]]
  /\ cleanup' = [n \in Goroutines |-> Max(cleanup[n],
       IF n \in world.listed /\ at[n].late /\ at[n].state = "holds" THEN Repeats ELSE NoCleanup)]
  /\ world' = [world EXCEPT !.force = "none", !.listed = {}]
  /\ UNCHANGED <<server, wire>>

\* Close releases the holds that it finds, and waits until the waiters have left.
Close ==
  /\ Fault("close") /\ Open
  /\ world' = [Failed(world) EXCEPT !.close = "closing"]
  /\ cleanup' = [n \in Goroutines |->
       Max(cleanup[n], IF \A g \in Goroutines : at[g].state = "holds" => at[g].name # n
                       THEN NoCleanup ELSE Max(Once, AfterHold(at[n])))]
  /\ at' = [g \in Goroutines |-> IF at[g].state = "holds" THEN Over(at[g]) ELSE at[g]]
  /\ UNCHANGED <<server, wire>>

\* Cleanups that repeat are given up.
Closed ==
  /\ world.close = "closing" /\ Waiting = {} /\ \A n \in Goroutines : cleanup[n] # Once
  /\ world' = [world EXCEPT !.close = "closed"]
  /\ UNCHANGED <<server, at, cleanup, wire>>

\* ------------------------------------------------------------------ the other process
OtherAsks ==
  /\ world.other # "over" /\ (server.holder = None \/ ~Registered(server, Other))
  /\ server.holder # Other
  /\ server' = AfterAsk(server, Other, TRUE)
  /\ world' = [world EXCEPT !.other = "waits", !.turns = 0]
  /\ UNCHANGED <<at, cleanup, wire>>

OtherReleases ==
  /\ server.holder = Other
  /\ \E p \in {Passed(server, Other, None, FALSE)} : server' = p.server /\ wire' = Sent(wire, p)
  /\ world' = [world EXCEPT !.other = "over"]
  /\ UNCHANGED <<at, cleanup>>

\* ------------------------------------------------------------------ the specification
Init ==
  /\ server = [holder |-> None, count |-> 0, long |-> FALSE, waiters |-> <<>>,
               leases |-> [g \in Goroutines |-> 0], ended |-> [g \in Goroutines |-> 0]]
  /\ at = [g \in Goroutines |->
       [state |-> "out", name |-> None, since |-> 0, here |-> 0, age |-> "unknown",
        forced |-> FALSE, doubt |-> FALSE, changed |-> FALSE, heard |-> FALSE,
        registered |-> FALSE, late |-> FALSE, asked |-> 0]]
  /\ cleanup = [g \in Goroutines |-> NoCleanup]
  /\ wire = [messages |-> {}, late |-> {}]
  /\ world = [other |-> "out", force |-> "none", listed |-> {}, forgot |-> "no", close |-> "open",
              faults |-> 0, turns |-> 0]

ExecuteLate == \E c \in wire.late : Executed(c)
Deliver == \E m \in wire.messages : Delivered(m)

Next ==
  \/ \E g \in Goroutines :
       \/ Try(g) \/ GiveUpTry(g) \/ Join(g) \/ Ask(g) \/ GiveUpAsk(g)
       \/ Turn(g) \/ Accept(g) \/ Decline(g) \/ Drop(g) \/ Leave(g)
       \/ \E do \in {"nest", "extend"}, late \in BOOLEAN : Change(g, do, late)
       \/ Release(g) \/ ReleaseInVain(g) \/ GiveUpRelease(g) \/ Lose(g)
       \/ CleanUp(g)
  \/ ExecuteLate \/ Deliver
  \/ Expire \/ Forget \/ Tick \/ Force \/ Forced \/ Close \/ Closed \/ OtherAsks \/ OtherReleases

\* What is sent is executed, and what is due is done. Nobody has to join, to leave or to decline.
Fairness ==
  /\ \A g \in Goroutines :
       /\ WF_vars(Ask(g)) /\ WF_vars(Accept(g) \/ Decline(g)) /\ WF_vars(Turn(g) \/ Release(g))
       /\ WF_vars(Lose(g)) /\ WF_vars(CleanUp(g))
  /\ WF_vars(ExecuteLate) /\ WF_vars(Deliver) /\ WF_vars(Forced)
  /\ WF_vars(OtherAsks) /\ WF_vars(OtherReleases)

Spec == Init /\ [][Next]_vars /\ Fairness

\* ------------------------------------------------------------------ properties
Believes(g) == at[g].state = "holds" /\ Trusted(at[g].name, at[g].since)

\* A name has one user. A holder has the lock in Redis, or was given it at most 100 ms after Redis
\* forgot it, or is about to hear of a ForceUnlock.
OneHolder ==
  /\ \A g \in Goroutines : Believes(g) =>
       \/ server.holder = at[g].name \/ at[g].doubt
       \/ world.force = "executed" /\ g \in world.listed
  /\ \A g, h \in Goroutines : \A n \in Goroutines : Uses(g, n) /\ Uses(h, n) => g = h

\* A name that nobody uses has neither the lock nor a registration, or a cleanup is due, or the
\* client is about to hear of it.
NoGhost ==
  \A n \in Goroutines : cleanup[n] = NoCleanup /\ (\A g \in Goroutines : ~Uses(g, n)) =>
    /\ server.holder = n /\ at[n].state # "waits" => \E m \in wire.messages : m.to = n
    /\ Registered(server, n) => at[n].state # "over"

\* The count and the lease in Redis are those that the holder has asked for.
AsHeld ==
  \A g \in Goroutines : Believes(g) /\ server.holder = at[g].name /\ ~at[g].changed =>
    server.count = 1 /\ ~server.long

\* After this many turns Redis decides who is next.
Bounded == world.turns <= Bound

\* Whoever waits gets the lock, or leaves.
GoroutineIsServed ==
  \A g \in Goroutines : at[g].state = "waits" ~> at[g].state \in {"holds", "over"}
OtherIsServed == world.other = "waits" ~> server.holder = Other \/ world.other = "over"

=============================================================================
