------------------------------ MODULE FairQueue ------------------------------
\* The fair lock: the queue in Redis that lua/fair_acquire.lua, lua/fair_release.lua, lua/common/queue.lua
\* and lua/common/turn.lua keep, and its callers (package rlock), which wait, leave, hang, die, lose connections,
\* and are cancelled with a request under way. Waiters of Redisson are in the same queue.
\*
\* Time is counted in ticks. Every time is what is left of it: a score of 2 passes in two ticks, and one of 0 or
\* less has passed. Without a clock the states are finitely many, although time goes on for ever.
\* The scripts are transcribed with their loops. Each is one atomic step, as in Redis.
\*
\* Left out, and why that is sound:
\* - Nested levels: the queue knows of none.
\* - Servers that do not count listeners: there every head counts as one that listens.
\* - Refusals by memory or permissions, and programs that damage the queue: tests of package lua do those.
\* - A server's clock that the client does not know yet: a budget then counts from the execution of the request.
\* - The time between a request and its reply, unless the caller has left or lost its connection by then.
\* - The expiry of the budgets' key: it outlasts all budgets by four naps, and somebody asks in every nap.
\* Each owner waits once, because each call of rlock has a name of its own.
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Waiters,     \* owners of this library
  Javas,       \* owners of Redisson
  Siblings,    \* owners of one client; each other one has a client of its own
  InOrder,     \* whether waiters come in the order of their names, which loses nothing: they are alike
  Triers,      \* waiters that try without waiting
  Budgets,     \* for how long callers wait; 0 is without a limit
  Lease,
  JavaLease,
  Window,      \* of waiters without a limit
  JavaWindow,
  Nap,         \* MaxNap
  HeadTime,    \* headTimeout
  DeafTime,    \* deafTimeout
  LeastTime,   \* the shortest turn of a waiter whose client hangs
  Near,        \* a waiter that stops waiting so soon does not move its score
  Floor,       \* scores that passed longer ago are not told apart
  Ticks,       \* by how much time advances at once
  Renews,      \* whether holders may renew their leases
  Faults,      \* those that happen: "die", "hang", "cut", "cancel", "lose", "leave"; "resume" allows that after "hang"
  MaxFaults,   \* how many
  MaxIdle,     \* for how long a free lock may wait for its waiters
  Without      \* the rules that are left out

Rule(r) == r \notin Without

Owners == Waiters \cup Javas
None == "none"
Client(o) == IF o \in Siblings THEN "client" ELSE o
Ever == 1000000  \* longer than all times
NoTurn == [who |-> None, score |-> 0, ends |-> 0, hurried |-> 0, ttl |-> 0]

VARIABLES
  \* in Redis
  lock,     \* the holder, or None
  left,     \* of its lease
  queue,    \* sequence of owners and scores, head first
  budget,   \* owner -> when its budget ends; Ever if it has none
  turn,     \* of the head; NoTurn
  ear,      \* owner -> "yes": it listens; "no": not yet, or no longer; "cut": it has lost its connection
  \* in the callers
  pc,       \* owner -> "idle", "waits", "holds", "leaves", "hung", "dead", "done"
  sleep,    \* owner -> when it asks again
  until,    \* owner -> when its budget ends; Ever without a limit
  window,   \* owner -> that of its requests
  late,     \* owners whose request may still be executed, although nobody waits for the reply
  faults,   \* how many have happened
  \* for the properties alone
  arrived,  \* the owners that wait, in the order in which they were queued first
  good,     \* those of them that were there whenever it was their turn
  passed,   \* whether one of those was passed over
  ghost,    \* whether a request that came after its budget has taken the lock or a place
  idle,     \* for how long the lock has been free while somebody waits
  old       \* for how long a place has outlasted its budget while somebody waits

server == <<lock, left, queue, budget, turn>>
callers == <<pc, sleep, until, window, late, faults>>
history == <<arrived, good, passed, ghost, idle, old>>
vars == <<lock, left, queue, budget, turn, ear, pc, sleep, until, window, late, faults,
          arrived, good, passed, ghost, idle, old>>

Max(a, b) == IF a >= b THEN a ELSE b
Min(a, b) == IF a <= b THEN a ELSE b

-----------------------------------------------------------------------------
\* The rules of the argument.
\*
\* RULE keepScore BREAKS NobodyPassedOver
\*   A waiter loses its place because the lock is held for longer than its window, although it asks again and again.
\*   STEPS Come Come Renew Tick Come
\*   WITH Renews = TRUE; MaxFaults = 0
\*
\* RULE keepDistance BREAKS NobodyPassedOver
\*   Only the score of the waiter that asks moves. When it takes the lock, the gap before the next one closes by more
\*   than there was, and Redisson drops that one.
\*   STEPS Come Come Come Ask Unlock Ask Tick JavaCome
\*   WITH Javas = {"j"}; Budgets = {0}; MaxFaults = 0
\*
\* RULE dropPassedTurn BREAKS TakenSoon
\*   A dead head keeps the lock from all others.
\*   STEPS Come Come Die Tick Ask Tick
\*   WITH Faults = {"die"}; MaxIdle = 3
\*
\* RULE deafIsShort BREAKS TakenSoon
\*   A head without a listener has as much time as one that listens, and dead ones delay the queue. Nothing else
\*   depends on this rule.
\*   STEPS Come Come Die Tick
\*   WITH HeadTime = 6; Faults = {"die"}; MaxIdle = 3
\*
\* RULE budget BREAKS PlaceEndsWithBudget
\*   The place of a waiter whose process died or hangs outlasts its wait.
\*   STEPS Come Come Die Tick
\*   WITH Renews = TRUE; Faults = {"die"}
\*
\* RULE lateRequest BREAKS NoGhost
\*   A request that was under way when its caller's wait ended takes the lock, although nobody will release it.
\*   STEPS Come Come Cancel Tick ExecuteLate
\*
\* RULE cleanUpAfterReply BREAKS NothingLeftBehind
\*   A caller is cancelled, and its request is executed after its place was removed.
\*   STEPS Come Come Cancel CleanUp ExecuteLate
\*
\* RULE inheritTurn BREAKS TakenSoon
\*   Budgets of waiters of a dead client end one after the other. Each of the next has a turn of its own.
\*   STEPS Come Come Come Come Die Tick
\*   WITH Waiters = {"a", "b", "c", "d"}; Siblings = {"b", "c"}; Budgets = {0, 3}; DeafTime = 2; Faults = {"die"}; Nap = 1; MaxIdle = 3
\*
\* RULE tellHead BREAKS TakenSoon
\*   The head does not learn of a release, and sleeps.
\*   STEPS Come Come Unlock Tick
\*   WITH MaxFaults = 0; MaxIdle = 0
\*
\* RULE tellNext BREAKS TakenSoon
\*   A head leaves without taking the free lock, and the next one sleeps.
\*   STEPS Come Come Unlock Come Leave CleanUp Tick
\*   WITH Faults = {"leave"}; MaxIdle = 0
\*
\* RULE noBarging BREAKS NobodyPassedOver
\*   An attempt that does not wait takes the free lock before the head does.
\*   STEPS Come Come Unlock Try
\*   WITH Triers = {"c"}; MaxFaults = 0
\*
\* RULE closeGaps BREAKS HeadPassesInTime
\*   Scores move away with each waiter that takes the lock or leaves, and Redisson waits for a dead head that long.
\*   STEPS Come Come Unlock Come Ask
\*   WITH MaxFaults = 0
\*
\* RULE nudge BREAKS TakenSoon
\*   The next head asked before a short lease began, and nobody asks when that is over.
\*   STEPS Come Come Come Ask Ask Tick
\*   WITH Lease = 1; Nap = 4; MaxFaults = 0; MaxIdle = 0
\*
\* RULE freshTurn BREAKS NobodyPassedOver
\*   A turn that began before Redisson took the lock counts against the next head.
\*   STEPS Come JavaCome Unlock JavaAsk Tick JavaUnlock Come
\*   WITH Javas = {"j"}; JavaLease = 5; Budgets = {0}; Faults = {"cut"}
\*
\* RULE askAfterListening BREAKS TakenSoon
\*   A release comes between the first request and the subscription.
\*   STEPS Come Come Unlock Listen Tick
\*   WITH MaxFaults = 0; MaxIdle = 0
\*
\* RULE lookAgain BREAKS WaiterIsServed
\*   Waiters rely on messages, and nobody tells of the end of a lease.
\*   STEPS Come Come Tick
\*   WITH MaxFaults = 0
-----------------------------------------------------------------------------
\* The scripts. Each operator takes what is in Redis as a record, and returns it changed. told has the messages
\* that the command publishes: <<owner, 0>> when the lock is free, <<owner, n>> to ask again in n ticks.

Redis == [lock |-> lock, left |-> left, queue |-> queue, budget |-> budget, turn |-> turn, told |-> <<>>]

Place(s, o) ==
  IF \E i \in 1..Len(s.queue) : s.queue[i].who = o THEN CHOOSE i \in 1..Len(s.queue) : s.queue[i].who = o ELSE 0
Queued(s, o) == \E i \in 1..Len(s.queue) : s.queue[i].who = o
Left(s) == IF s.lock = None THEN 0 ELSE s.left
Tell(s, o, n) == [s EXCEPT !.told = Append(@, <<o, n>>)]
Hears(o) == ear[o] = "yes"

\* Shift adds to the scores from an index on.
Shift(q, from, by) ==
  IF by = 0 THEN q ELSE [i \in 1..Len(q) |-> IF i < from THEN q[i] ELSE [q[i] EXCEPT !.score = @ + by]]

\* pop
Pop(s, base) ==
  LET closed == IF Rule("closeGaps") THEN Max(s.queue[1].score - base, 0) ELSE 0
  IN [s EXCEPT !.queue = Shift(Tail(@), 1, -closed), !.budget[s.queue[1].who] = Ever, !.turn = NoTurn]

\* drop
RECURSIVE Kept(_, _, _, _)
Kept(q, leaving, base, closed) ==
  IF q = <<>> THEN <<>>
  ELSE LET score == Head(q).score
           more == Max(base, score)
       IN IF Head(q).who \in leaving
          THEN Kept(Tail(q), leaving, more, IF Rule("closeGaps") THEN closed + Max(score - base, 0) ELSE closed)
          ELSE <<[Head(q) EXCEPT !.score = @ - closed]>> \o Kept(Tail(q), leaving, more, closed)

Drop(s, leaving, base) ==
  LET kept == Kept(s.queue, leaving, base, 0)
  IN [s EXCEPT !.queue = kept,
               !.budget = [o \in Owners |-> IF o \in leaving THEN Ever ELSE @[o]],
               !.turn = IF kept = <<>> THEN NoTurn ELSE @]

\* Stale removes heads whose score has passed. Redisson's scripts, which know no budgets, begin with it.
RECURSIVE Stale(_, _)
Stale(q, spared) ==
  IF q # <<>> /\ q[1].score <= 0 /\ q[1].who \notin spared THEN Stale(Tail(q), spared) ELSE q

\* sweep
Sweep(s, leaving) ==
  IF s.queue = <<>>
  THEN [s |-> IF leaving = {} THEN s ELSE [s EXCEPT !.budget = [o \in Owners |-> Ever]], another |-> FALSE]
  ELSE LET over == IF Rule("budget") THEN {o \in Owners : s.budget[o] <= 0} ELSE {}
           gone == leaving \cup over
           s1 == IF gone = {} THEN s ELSE Drop(s, gone, Left(s))
           q == Stale(s1.queue, {o \in Owners : s1.budget[o] # Ever})
       IN [s |-> [s1 EXCEPT !.queue = q, !.turn = IF q = <<>> THEN NoTurn ELSE @],
           another |-> q = <<>> \/ q[1].who # s.queue[1].who]

\* nudge
RECURSIVE Nudged(_, _, _, _)
Nudged(s, i, last, after) ==
  LET at == IF i = 0 THEN 1 ELSE Len(s.queue) + 1 + i
  IN IF i < last \/ at < 1 \/ s.queue = <<>> THEN s
     ELSE LET o == s.queue[at].who
              s1 == Tell(s, o, after)
          IN IF Hears(o) THEN s1 ELSE Nudged(s1, i - 1, last, after)

Nudge(s, after, deaf) ==
  IF ~Rule("nudge") \/ after >= Nap THEN s ELSE Nudged(s, IF deaf THEN -1 ELSE 0, -10, after)

\* offer: of the last head that was dropped silent, its client hung, and how long others of that get.
RECURSIVE Offered(_, _, _, _, _, _)
Offered(s, asking, dropped, silent, hung, hurry) ==
  LET missed == Cardinality(dropped)
      settled == IF missed = 0 THEN s ELSE Drop(s, dropped, 0)
  IN IF missed = Len(s.queue) \/ s.queue[missed + 1].who = asking
     THEN [s |-> settled, nap |-> 0]
     ELSE
     LET head == s.queue[missed + 1].who
         s1 == IF Rule("tellHead") THEN Tell(s, head, 0) ELSE s
         deaf == ~Hears(head) /\ DeafTime < HeadTime
         given == IF deaf /\ Rule("deafIsShort") THEN DeafTime
                  ELSE IF Client(head) = hung THEN hurry ELSE HeadTime
         own == s.turn.who = head /\ s.turn.score = s.queue[missed + 1].score
         inherited == /\ Rule("inheritTurn")
                      /\ missed = 0 /\ s.turn # NoTurn /\ ~Queued(s, s.turn.who)
                      /\ (deaf \/ Client(s.turn.who) = Client(head))
         mine == own \/ inherited
         over == mine /\ s.turn.ends <= 0 /\ Rule("dropPassedTurn")
         waits == s.budget[head]
     IN IF mine /\ ~over /\ s.turn.ends <= given
        THEN [s |-> s1, nap |-> Min(Max(s.turn.ends, 1), waits)]
        ELSE IF ~over /\ (mine \/ ~(silent /\ deaf))
        THEN LET s2 == IF missed = 0 THEN s1 ELSE Drop(s1, dropped, 0)
                 s3 == [s2 EXCEPT !.turn =
                          [who |-> head, score |-> s2.queue[1].score, ends |-> given,
                           hurried |-> IF Client(head) = hung THEN hurry ELSE 0, ttl |-> 2 * HeadTime]]
                 nap == Min(given, waits)
             IN [s |-> IF deaf THEN Nudge(s3, nap, TRUE) ELSE s3, nap |-> nap]
        ELSE Offered(s1, asking, dropped \cup {head}, deaf, Client(head),
                     IF mine /\ s.turn.hurried > 0 THEN Max(s.turn.hurried \div 4, LeastTime) ELSE DeafTime)

Offer(s, asking) == Offered(s, asking, {}, FALSE, None, DeafTime)

\* keep
Keep(s, o, w) ==
  LET i == Place(s, o)
      base == Left(s) + 2 * Nap
  IN IF ~Rule("keepScore") \/ i = 0 THEN s
     ELSE IF s.queue[i].score >= base + w THEN s
     ELSE LET short == (IF i = 1 THEN base ELSE Max(base, s.queue[i - 1].score)) + w - s.queue[i].score
          IN IF short <= 0 THEN s
             ELSE IF Rule("keepDistance") THEN [s EXCEPT !.queue = Shift(@, i, short)]
             ELSE [s EXCEPT !.queue[i].score = @ + short]

\* Acquire is fair_acquire.lua for an owner that waits or not, with a window, until its budget ends. holder is None if
\* the owner has the lock, or else who has it or comes first; nap is when to ask again.
Acquire(s0, o, waits, w, ends) ==
  IF s0.lock = o THEN [s |-> [s0 EXCEPT !.left = Max(@, Lease)], holder |-> None, nap |-> 0]
  ELSE
  LET free == s0.lock = None
      isLate == ends <= 0 /\ Rule("lateRequest")
      s1 == IF free \/ ~Rule("freshTurn") THEN s0 ELSE [s0 EXCEPT !.turn = NoTurn]
      s2 == IF ends > Near THEN Keep(s1, o, w) ELSE s1
      s3 == IF ends # Ever /\ ~isLate /\ s2.budget[o] # Ever THEN [s2 EXCEPT !.budget[o] = ends] ELSE s2
      swept == Sweep(s3, {})
      queued == Queued(swept.s, o)
      offered == IF free THEN Offer(swept.s, IF isLate THEN None ELSE o) ELSE [s |-> swept.s, nap |-> -1]
      s5 == offered.s
      barges == free /\ ~waits /\ ~Rule("noBarging")
  IN IF barges \/ (free /\ offered.nap = 0 /\ ~isLate)
     THEN LET s6 == [s5 EXCEPT !.lock = o, !.left = Lease]
              s7 == IF s6.queue # <<>> /\ ~barges THEN Pop(s6, Lease) ELSE s6
          IN [s |-> Nudge(s7, Lease, FALSE), holder |-> None, nap |-> 0]
     ELSE LET joins == waits /\ ~queued /\ ~isLate
              tail == IF s5.queue = <<>> THEN Left(s5) ELSE s5.queue[Len(s5.queue)].score
              s6 == IF ~joins THEN s5
                    ELSE [s5 EXCEPT !.queue = Append(@, [who |-> o, score |-> tail + w]), !.budget[o] = ends]
              behind == ~free /\ s6.queue # <<>> /\ s6.queue[1].who # o
              s7 == IF behind /\ swept.another THEN Nudge(s6, s6.left, FALSE) ELSE s6
          IN [s |-> s7,
              holder |-> IF ~free THEN s7.lock ELSE IF s7.queue = <<>> THEN "nobody" ELSE s7.queue[1].who,
              nap |-> IF isLate THEN 1 ELSE IF behind THEN Nap ELSE IF free THEN offered.nap ELSE Min(s7.left, Nap)]

\* Release is fair_release.lua, with a count of 0.
Release(s0, names) ==
  LET held == s0.lock \in names
      s1 == IF held THEN [s0 EXCEPT !.lock = None, !.left = 0, !.turn = NoTurn] ELSE s0
      resigns == s1.turn.who \in names
      s2 == [s1 EXCEPT !.budget = [o \in Owners |-> IF o \in names THEN Ever ELSE @[o]]]
      swept == Sweep(s2, {o \in names : Queued(s2, o)})
  IN IF swept.s.lock # None
     THEN IF swept.another THEN Nudge(swept.s, swept.s.left, FALSE) ELSE swept.s
     ELSE IF held \/ ((swept.another \/ resigns) /\ Rule("tellNext")) THEN Offer([swept.s EXCEPT !.turn = NoTurn], None).s
     ELSE swept.s

\* What Redisson's scripts do, by PROTOCOL.md.
JavaPurge(s) == [s EXCEPT !.queue = Stale(@, {})]

JavaAcquire(s0, j) ==
  LET s == JavaPurge(s0)
      first == s.queue # <<>> /\ s.queue[1].who = j
      tail == IF s.queue = <<>> THEN Left(s) ELSE s.queue[Len(s.queue)].score
  IN IF s.lock = j THEN s
     ELSE IF s.lock = None /\ (s.queue = <<>> \/ first)
     THEN [s EXCEPT !.lock = j, !.left = JavaLease,
                    !.queue = IF first THEN Shift(Tail(@), 1, -JavaWindow) ELSE @]
     ELSE IF Queued(s, j) THEN s
     ELSE [s EXCEPT !.queue = Append(@, [who |-> j, score |-> tail + JavaWindow])]

JavaRelease(s0) ==
  LET s == [JavaPurge(s0) EXCEPT !.lock = None, !.left = 0]
  IN IF s.queue = <<>> THEN s ELSE Tell(s, s.queue[1].who, 0)

JavaLeave(s, j) ==
  LET i == Place(s, j)
  IN IF i = 0 THEN s
     ELSE [s EXCEPT !.queue = SubSeq(@, 1, i - 1) \o Shift(SubSeq(@, i + 1, Len(@)), 1, -JavaWindow)]

-----------------------------------------------------------------------------
\* The callers.

Init ==
  /\ lock = None /\ left = 0 /\ queue = <<>> /\ budget = [o \in Owners |-> Ever] /\ turn = NoTurn
  /\ ear = [o \in Owners |-> "no"]
  /\ pc = [o \in Owners |-> "idle"]
  /\ sleep = [o \in Owners |-> 0]
  /\ until = [o \in Owners |-> Ever]
  /\ window = [o \in Owners |-> 0]
  /\ late = {} /\ faults = 0
  /\ arrived = <<>> /\ good = {} /\ passed = FALSE /\ ghost = FALSE /\ idle = 0 /\ old = 0

Waits(o) == pc[o] = "waits"

\* Woken returns when owners ask again, after messages: those that wait have read them.
Woken(told, o, when) ==
  LET mine == {told[i][2] : i \in {k \in 1..Len(told) : told[k][1] = o}}
      soon == {n \in mine : o \in Waiters \/ n = 0}
  IN IF ~Hears(o) \/ soon = {} THEN when ELSE Min(when, CHOOSE n \in soon : \A m \in soon : n <= m)

\* Command ends a command. s is what is in Redis now, p is pc, and when is sleep, before the messages, which may make
\* owners ask sooner.
Command(s, p, when) ==
  /\ lock' = s.lock /\ left' = s.left /\ queue' = s.queue /\ budget' = s.budget /\ turn' = s.turn
  /\ pc' = p
  /\ sleep' = [o \in Owners |-> IF p[o] = "waits" THEN Woken(s.told, o, when[o]) ELSE 0]

\* Comes reports whether an owner may still take the lock.
Comes(x, p) == p[x] \in {"waits", "hung", "leaves"} \/ (p[x] = "dead" /\ x \in late)

\* Forward has the waiters whose scores may pass before they ask again, because Redisson has subtracted the window of
\* one of its own. Redisson then drops them. That is a limit of the code, too.
Forward(s) == {x \in Waiters : Queued(s, x) /\ s.queue[Place(s, x)].score <= Nap}

\* Served records that o has taken the lock or a place, if it has.
Served(s, o, p) ==
  LET taken == s.lock = o /\ lock # o
      at(x) == IF \E i \in 1..Len(arrived) : arrived[i] = x
               THEN CHOOSE i \in 1..Len(arrived) : arrived[i] = x ELSE Len(arrived) + 1
      joins == at(o) > Len(arrived) /\ Queued(s, o)
  IN /\ idle' = IF taken THEN 0 ELSE idle
     /\ passed' = (passed \/ (taken /\ \E x \in good : at(x) < at(o)))
     /\ arrived' = SelectSeq(IF joins THEN Append(arrived, o) ELSE arrived, LAMBDA x : Comes(x, p))
     /\ good' = {x \in IF joins THEN good \cup {o} ELSE good : p[x] = "waits"}
                \ (IF o \in Javas /\ taken THEN Forward(s) ELSE {})

\* Asked is a request of a caller that reads the reply.
Asked(o, waits, w, ends) ==
  LET r == Acquire(Redis, o, waits, w, ends)
      p == [pc EXCEPT ![o] = IF r.holder = None THEN "holds" ELSE IF waits THEN "waits" ELSE "done"]
  IN /\ Command(r.s, p, [sleep EXCEPT ![o] = IF Rule("lookAgain") THEN Min(r.nap, Nap) ELSE Ever])
     /\ Served(r.s, o, p)
     /\ until' = [until EXCEPT ![o] = IF p[o] = "waits" \/ o \in late THEN ends ELSE Ever]
     /\ window' = [window EXCEPT ![o] = IF p[o] = "waits" \/ o \in late THEN w ELSE 0]
     /\ ear' = [ear EXCEPT ![o] = IF p[o] = "waits" THEN @ ELSE "no"]

Begins(o) == pc[o] = "idle" /\ (InOrder => o = CHOOSE x \in Waiters : pc[x] = "idle")

\* Lock: a call begins, and sends its first request.
Come(o, b) ==
  /\ Begins(o)
  /\ Asked(o, TRUE, IF b = 0 THEN Window ELSE b, IF b = 0 THEN Ever ELSE b)
  /\ UNCHANGED <<late, faults, ghost, old>>

\* TryLock without waiting.
Try(o) ==
  /\ Begins(o) /\ o \in Triers
  /\ Asked(o, FALSE, Window, Ever)
  /\ UNCHANGED <<late, faults, ghost, old>>

\* park: a waiter has slept, or was told.
Ask(o) ==
  /\ Waits(o) /\ sleep[o] = 0 /\ until[o] > 0
  /\ Asked(o, TRUE, window[o], until[o])
  /\ UNCHANGED <<late, faults, ghost, old>>

\* Subscribe: after each new subscription a waiter asks, because it may have missed a message.
Listen(o) ==
  /\ Waits(o) /\ ear[o] # "yes"
  /\ ear' = [ear EXCEPT ![o] = "yes"]
  /\ sleep' = [sleep EXCEPT ![o] = IF Rule("askAfterListening") THEN 0 ELSE @]
  /\ UNCHANGED <<server, pc, until, window, late, faults, history>>

\* renew.lua
Renew(o) ==
  /\ Renews /\ pc[o] = "holds" /\ left < Lease
  /\ left' = Lease
  /\ UNCHANGED <<lock, queue, budget, turn, ear, callers, history>>

\* Unlock.
Unlock(o) ==
  /\ pc[o] = "holds"
  /\ LET s == Release(Redis, {o})
         p == [pc EXCEPT ![o] = IF o \in late THEN "leaves" ELSE "done"]
     IN Command(s, p, sleep) /\ Served(s, o, p)
  /\ UNCHANGED <<ear, until, window, late, faults, ghost, old>>

\* finish: the budget ends, and the cleaner is told.
GiveUp(o) ==
  /\ Waits(o) /\ until[o] <= 0
  /\ pc' = [pc EXCEPT ![o] = "leaves"]
  /\ sleep' = [sleep EXCEPT ![o] = 0]
  /\ ear' = [ear EXCEPT ![o] = "no"]
  /\ good' = good \ {o}
  /\ UNCHANGED <<server, until, window, late, faults, arrived, passed, ghost, idle, old>>

\* Leaving has the owners that are released together with o.
Leaving(o) == {x \in Owners : pc[x] = "leaves" /\ (x \notin late \/ x = o) /\ Client(x) = Client(o)}

\* cleanUp: owners of one client that have left are released by one command. It comes after the reply to their last
\* request, or is sent again after that.
CleanUp(o) ==
  /\ pc[o] = "leaves" /\ (o \notin late \/ ~Rule("cleanUpAfterReply"))
  /\ LET names == Leaving(o)
         s == Release(Redis, names)
         p == [x \in Owners |-> IF x \in names THEN "done" ELSE pc[x]]
     IN /\ Command(s, p, sleep)
        /\ until' = [x \in Owners |-> IF x \in names THEN Ever ELSE until[x]]
        /\ window' = [x \in Owners |-> IF x \in names THEN 0 ELSE window[x]]
        /\ arrived' = SelectSeq(arrived, LAMBDA x : Comes(x, p))
  /\ UNCHANGED <<ear, late, faults, good, passed, ghost, idle, old>>

\* A request whose caller does not wait for the reply is executed.
ExecuteLate(o) ==
  /\ o \in late
  /\ LET r == Acquire(Redis, o, TRUE, window[o], until[o])
     IN /\ Command(r.s, pc, sleep)
        /\ Served(r.s, o, pc)
        /\ ghost' = (ghost \/ (until[o] <= 0 /\ ((r.s.lock = o /\ lock # o) \/ (Queued(r.s, o) /\ ~Queued(Redis, o)))))
  /\ late' = late \ {o}
  /\ UNCHANGED <<ear, until, window, faults, old>>

-----------------------------------------------------------------------------
\* Redisson's callers. They sleep until they are told.

JavaAsked(j) ==
  LET s == JavaAcquire(Redis, j)
      p == [pc EXCEPT ![j] = IF s.lock = j THEN "holds" ELSE "waits"]
  IN /\ Command(s, p, [sleep EXCEPT ![j] = Ever])
     /\ Served(s, j, p)
     /\ ear' = [ear EXCEPT ![j] = IF p[j] = "waits" THEN "yes" ELSE "no"]

JavaCome(j) ==
  /\ pc[j] = "idle" /\ JavaAsked(j)
  /\ UNCHANGED <<until, window, late, faults, ghost, old>>

JavaAsk(j) ==
  /\ Waits(j) /\ sleep[j] = 0 /\ JavaAsked(j)
  /\ UNCHANGED <<until, window, late, faults, ghost, old>>

JavaUnlock(j) ==
  /\ pc[j] = "holds"
  /\ LET s == JavaRelease(Redis)
         p == [pc EXCEPT ![j] = "done"]
     IN Command(s, p, sleep) /\ Served(s, j, p)
  /\ UNCHANGED <<ear, until, window, late, faults, ghost, old>>

-----------------------------------------------------------------------------
\* Faults.

Fault(kind) == kind \in Faults /\ faults < MaxFaults /\ faults' = faults + 1

Away(o, how) ==
  /\ pc' = [pc EXCEPT ![o] = how]
  /\ sleep' = [sleep EXCEPT ![o] = 0]
  /\ good' = good \ {o}
  /\ UNCHANGED arrived

\* A caller is cancelled between two requests; Redisson's leaves by its script.
Leave(o) ==
  /\ Waits(o) /\ Fault("leave")
  /\ IF o \in Waiters
     THEN Away(o, "leaves") /\ UNCHANGED server
     ELSE LET s == JavaLeave(Redis, o)
              p == [pc EXCEPT ![o] = "done"]
          IN Command(s, p, sleep) /\ arrived' = SelectSeq(arrived, LAMBDA x : x # o) /\ good' = good \ ({o} \cup Forward(s))
  /\ ear' = [ear EXCEPT ![o] = "no"]
  /\ UNCHANGED <<until, window, late, passed, ghost, idle, old>>

\* A caller is cancelled with its request under way.
Cancel(o) ==
  /\ Waits(o) /\ o \in Waiters /\ sleep[o] = 0 /\ Fault("cancel")
  /\ Away(o, "leaves")
  /\ ear' = [ear EXCEPT ![o] = "no"]
  /\ late' = late \cup {o}
  /\ UNCHANGED <<server, until, window, passed, ghost, idle, old>>

\* A connection breaks with a request under way. The caller asks again soon, by another one.
Lose(o) ==
  /\ Waits(o) /\ o \in Waiters /\ sleep[o] = 0 /\ o \notin late /\ Fault("lose")
  /\ late' = late \cup {o}
  /\ sleep' = [sleep EXCEPT ![o] = 1]
  /\ good' = good \ {o}
  /\ UNCHANGED <<server, ear, pc, until, window, arrived, passed, ghost, idle, old>>

\* The connection that a waiter listens on breaks.
Cut(o) ==
  /\ Waits(o) /\ o \in Waiters /\ Hears(o) /\ Fault("cut")
  /\ ear' = [ear EXCEPT ![o] = "cut"]
  /\ UNCHANGED <<server, pc, sleep, until, window, late, history>>

\* A process dies, with all callers in it. What it has sent may still be executed.
Die(o) ==
  /\ pc[o] \in {"waits", "holds", "leaves", "hung"} /\ Fault("die")
  /\ LET dead == {x \in Owners : Client(x) = Client(o) /\ pc[x] \in {"waits", "holds", "leaves", "hung"}}
     IN /\ pc' = [x \in Owners |-> IF x \in dead THEN "dead" ELSE pc[x]]
        /\ sleep' = [x \in Owners |-> IF x \in dead THEN 0 ELSE sleep[x]]
        /\ ear' = [x \in Owners |-> IF x \in dead THEN "no" ELSE ear[x]]
        /\ arrived' = SelectSeq(arrived, LAMBDA x : x \notin dead \/ x \in late) /\ good' = good \ dead
  /\ UNCHANGED <<server, until, window, late, passed, ghost, idle, old>>

\* A process hangs. Its connections stay open.
Hang(o) ==
  /\ Waits(o) /\ Fault("hang")
  /\ LET hung == {x \in Owners : Client(x) = Client(o) /\ Waits(x)}
     IN /\ pc' = [x \in Owners |-> IF x \in hung THEN "hung" ELSE pc[x]]
        /\ sleep' = [x \in Owners |-> IF x \in hung THEN 0 ELSE sleep[x]]
        /\ good' = good \ hung
  /\ UNCHANGED <<server, ear, until, window, late, arrived, passed, ghost, idle, old>>

Resume(o) ==
  /\ pc[o] = "hung" /\ "resume" \in Faults
  /\ LET hung == {x \in Owners : Client(x) = Client(o) /\ pc[x] = "hung"}
     IN pc' = [x \in Owners |-> IF x \in hung THEN "waits" ELSE pc[x]]
  /\ UNCHANGED <<server, ear, sleep, until, window, late, faults, history>>

-----------------------------------------------------------------------------
\* Urgent steps come before time goes on: a caller is ready to run, and its connection works.
Urgent ==
  \/ \E o \in Owners : Waits(o) /\ (sleep[o] = 0 \/ until[o] <= 0 \/ ear[o] = "no")
  \/ \E o \in Owners : pc[o] = "leaves" /\ o \notin late

\* Somebody of this library waits.
SomebodyWaits == \E o \in Waiters : Waits(o)

Less(n, d) == IF n = Ever THEN Ever ELSE Max(n - d, 0)

\* Absent reports whether an owner has not been there in its turn. A waiter of Redisson's also loses its place, by
\* Redisson's own rule, if it is the head for longer than its window.
Absent(o, d) ==
  /\ queue # <<>> /\ queue[1].who = o
  /\ \/ lock = None /\ (ear[o] # "yes" \/ o \in Javas)
     \/ o \in Javas /\ queue[1].score <= d

Tick(d) ==
  /\ ~Urgent
  /\ \A o \in Owners : Waits(o) => sleep[o] >= d /\ until[o] >= d
  /\ LET over == lock # None /\ left <= d
         stays == {o \in good : until[o] > d /\ ~Absent(o, d)}
     IN /\ lock' = IF over THEN None ELSE lock
        /\ left' = IF over THEN 0 ELSE Max(left - d, 0)
        /\ pc' = IF over /\ pc[lock] = "holds" THEN [pc EXCEPT ![lock] = IF lock \in late THEN "leaves" ELSE "done"] ELSE pc
        /\ good' = stays
  /\ queue' = [i \in 1..Len(queue) |-> [queue[i] EXCEPT !.score = Max(@ - d, -Floor)]]
  /\ budget' = [o \in Owners |-> Less(budget[o], d)]
  /\ turn' = IF turn = NoTurn \/ turn.ttl <= d THEN NoTurn
             ELSE [turn EXCEPT !.score = Max(@ - d, -Floor), !.ends = Max(@ - d, 0), !.ttl = @ - d]
  /\ sleep' = [o \in Owners |-> Less(sleep[o], d)]
  /\ until' = [o \in Owners |-> Less(until[o], d)]
  /\ idle' = IF lock = None /\ SomebodyWaits THEN Min(idle + d, MaxIdle + 1) ELSE 0
  /\ old' = IF SomebodyWaits /\ \E i \in 1..Len(queue) : until[queue[i].who] <= 0 THEN Min(old + d, Nap + 1) ELSE 0
  /\ UNCHANGED <<ear, window, late, faults, arrived, passed, ghost>>

Next ==
  \/ \E o \in Waiters :
       \/ \E b \in Budgets : Come(o, b)
       \/ Try(o) \/ Ask(o) \/ Listen(o) \/ Renew(o) \/ Unlock(o) \/ GiveUp(o) \/ CleanUp(o) \/ ExecuteLate(o)
       \/ Cancel(o) \/ Lose(o) \/ Cut(o) \/ Resume(o)
  \/ \E j \in Javas : JavaCome(j) \/ JavaAsk(j) \/ JavaUnlock(j)
  \/ \E o \in Owners : Leave(o) \/ Die(o) \/ Hang(o)
  \/ \E d \in Ticks : Tick(d)

\* Owners that run go on: a step that is due does not stay due for ever. That is weak fairness, because such a step
\* stays due until it is done; but TLC would take long for ENABLED of the scripts.
Due(o) ==
  \/ Waits(o) /\ (sleep[o] = 0 \/ until[o] <= 0)
  \/ o \in Waiters /\ Waits(o) /\ ear[o] # "yes"
  \/ pc[o] \in {"holds", "leaves"}
  \/ o \in late

Fairness == (\A o \in Owners : []<>~Due(o)) /\ WF_vars(\E d \in Ticks : Tick(d))

Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ Fairness

-----------------------------------------------------------------------------
\* A waiter that stays, and comes whenever it is its turn, is not passed over by one that was queued later.
NobodyPassedOver == ~passed

\* A request that is executed after its caller's budget leaves nothing behind.
NoGhost == ~ghost

\* A caller that has left properly has no lock and no place.
NothingLeftBehind ==
  \A o \in Owners : pc[o] = "done" => lock # o /\ ~Queued(Redis, o)

\* A holder believes in its lock only while Redis says so.
OneHolder == \A o \in Owners : pc[o] = "holds" => lock = o

\* A free lock is taken soon if somebody waits: no place outlives its waiter for long.
TakenSoon == idle <= MaxIdle

\* A place ends with its budget. Others look within a nap.
PlaceEndsWithBudget == old <= Nap

\* The score of a head that is dead, and has no budget, passes in time: Redisson passes over it only then.
HeadPassesInTime == queue # <<>> => queue[1].score <= Max(Lease, JavaLease) + 2 * Nap + Max(Window, JavaWindow)

\* A waiter that neither leaves nor hangs nor dies is served.
WaiterIsServed == \A o \in Waiters : Waits(o) ~> ~Waits(o)

=============================================================================
