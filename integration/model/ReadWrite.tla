----------------------------- MODULE ReadWrite -----------------------------
\* A read-write lock: the scripts lua/read_*.lua and write_*.lua with their fragments common/reads.lua and common/precedence.lua, and what rlock's
\* readwrite.go, unconfirmed.go, cleaner.go, release.go and attempt.go do with their replies.
\*
\* Modelled: downgrade, several read holds of an owner, each with a lease of its own; requests and releases without a reply that are executed late, or
\* never; cleanup; expiry; waiters that sleep until a message, the end of a lease or of their nap; precedence.
\* A hold's name in Redis is a number: a new one for each acquisition, but both modes of an owner share one.
\*
\* Left out, and why that is sound:
\* - The time between the execution of a script and its reply. Trust counts from the sending, and the reply changes the state of its owner only. An owner that
\*   gave up before the execution did so before the reply as well.
\* - endReads, which ends a read hold when the reply to a release says that it is gone. It only ends trust, and only after others may have got in.
\* - Owners that die. To the others that is an owner that does nothing any more, and where only safety is checked nobody has to do anything.
\* - The hand-over to a successor in the same process (HandOver.tla); drift of clocks, and renewals under faults (Lease.tla); levels of a write hold, which
\*   share a count and a lease; ForceUnlock; keys without expiry, servers without memory, ACLs, Redisson.
\* - Times are ticks. A cleanup is repeated for as long as the request may be executed; in the code for as long as Redis keeps what that leaves.
\* Bounds: a name is used again once nothing is left of it anywhere; at most MaxLate requests that nobody waits for. Time has no bound.
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
  Owners, Writers, Readers, \* Writers and Readers: who asks to write, and to read
  Names,                    \* numbers: how many names an owner has at a time
  Leases,                   \* leases that owners ask for
  MaxLevels,                \* of a read hold
  Faulty,                   \* owners that may give up a call whose reply is late
  Repeats,                  \* owners that may send a request once more
  Atomic,                   \* owners that are not interrupted: calls, loss and cleanup take no time
  MaxLate,                  \* how many requests may be late at a time
  Patient,                  \* owners that wait
  Stays,                    \* readers that renew and never release
  Prompt,                   \* whether calls take no time, waiters that are woken ask at once, and writers release before their leases end
  Bound, Pause,             \* readers step back for Bound at a time, 0 = never, with pauses
  Turn, WaiterTTL, MaxNap, Ticks,
  Without                   \* rules left out

VARIABLES
  redis,       \* all keys of the lock
  write, read, \* what each owner believes to hold; name 0 = nothing
  call,        \* the call that holds the session of an owner; do "none" = no call
  unconfirmed, \* of each owner and name: releases of a read hold that may still be under way
  late,        \* requests that nobody waits for, which may still be executed
  due          \* cleanups

client == <<write, read, call, unconfirmed, due>>
vars == <<redis, client, late>>

Rule(r) == r \notin Without

Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
Less(a, d) == Max(a - d, 0)
Longest(s) == IF s = {} THEN 0 ELSE CHOOSE x \in s : \A y \in s : y <= x

-----------------------------------------------------------------------------
\* Redis. A time to live of 0 is a missing key. reads has the counts in the hash, holds the keys of read holds, writer the write field.

NoHolds == [o \in Owners |-> [i \in Names |-> [n \in 1..MaxLevels |-> 0]]]
NoReads == [o \in Owners |-> [i \in Names |-> 0]]
NoWaiter == [key |-> <<>>, age |-> 0, ttl |-> 0]

Free(r) == [r EXCEPT !.mode = "none", !.ttl = 0, !.reads = NoReads, !.writer = {}]

Remaining(r, o, i) == Longest({r.holds[o][i][n] : n \in 1..r.reads[o][i]})

\* LongestRead is longest_read without the removal of dead readers, which DropDead does. All owners are of this library.
LongestRead(r) == Longest({Remaining(r, o, i) : o \in Owners, i \in Names})
DropDead(r) == [r EXCEPT !.reads =
  TLCEval([o \in Owners |-> TLCEval([i \in Names |-> IF Remaining(r, o, i) = 0 THEN 0 ELSE r.reads[o][i]])])]

\* RULE dropDeadReaders BREAKS LastsAsItsHolds
\*   A reader died, another one reads for longer and leaves. By the counts in the hash the dead one still reads, so the lock lasts for the lease of the other.
\*   STEPS Execute Execute Tick Unread Execute
\*   WITH Faulty = {}; Repeats = {}
Reading(r) ==
  IF Rule("dropDeadReaders") THEN LongestRead(r) > 0 ELSE \E o \in Owners, i \in Names : r.reads[o][i] > 0
LastUntil(r) == IF LongestRead(r) > 0 THEN [r EXCEPT !.ttl = LongestRead(r)] ELSE r

Result(r, status, told) == [redis |-> r, status |-> status, told |-> told, nap |-> 0]
Refusal(r) == [redis |-> r, status |-> "refused", told |-> "", nap |-> r.ttl]
StepsBack(r, nap) == [redis |-> r, status |-> "steps back", told |-> "", nap |-> nap]

\* RULE longestRead BREAKS Exclusion
\*   The hash ends with the lease of the latest reader. A writer gets in although another reads for longer.
\*   STEPS Execute Execute Tick AskWrite Execute
\*   WITH Leases = {1, 2}; Readers = {"a", "b"}; Writers = {"b"}; Faulty = {}
Lasting(r, lease) == IF Rule("longestRead") THEN Max(r.ttl, lease) ELSE lease

\* RULE lateAcquireKeepsLease BREAKS LastsAsItsHolds
\*   An acquisition that is executed late drops the second hold, and with it the longer lease that its owner believes in. The lock ends with the shorter one
\*   as soon as another reader leaves.
\*   STEPS Retry Execute Reenter Execute ExecuteLate
\*   WITH Faulty = {}
\* RULE absoluteCount BREAKS NoGhost
\*   The acquisition is repeated, and both are counted. One cleanup does not undo two.
\*   STEPS AskRead Retry Execute ExecuteLate CleanUp
\*   WITH MaxLevels = 2; Repeats = {"a"}; Writers = {"b"}; Faulty = {}
TakeRead(r, o, i, number, lease) ==
  LET had == r.reads[o][i]
      n == IF Rule("absoluteCount") THEN number ELSE Min(had + 1, MaxLevels)
      lasts == IF had > n /\ Rule("lateAcquireKeepsLease") THEN Max(lease, Remaining(r, o, i)) ELSE lease
  IN [r EXCEPT !.mode = IF @ = "none" THEN "read" ELSE @,
               !.ttl = Lasting(r, lease),
               !.reads[o][i] = n,
               !.holds[o][i] = TLCEval([k \in 1..MaxLevels |->
                  IF k = n THEN Max(@[k], lasts) ELSE IF k > n /\ k <= had THEN 0 ELSE @[k]])]

\* WaitingWriter is waiting_writer: for how long new readers step back, 0 = they do not.
\* RULE bounded BREAKS ReaderIsServed
\*   A reader stays, a writer waits for it, and new readers step back for that writer for ever.
\*   STEPS AskRead Execute AskWrite Execute AskRead Execute Tick
\*   WITH Owners = {"r", "s", "w"}; Atomic = {"r", "s", "w"}; Patient = {"r", "s", "w"}; Writers = {"w"}; Readers = {"r", "s"}; Stays = {"s"}
\* RULE precedence BREAKS WriterIsServed
\*   Readers come and go, one of them always reads, and the writer never gets in.
\*   STEPS AskRead Execute AskWrite Execute AskRead Execute Unread Execute
WaitingWriter(r) ==
  IF r.waiting.key = <<>> \/ ~Rule("precedence") THEN 0
  ELSE IF Rule("bounded") THEN Min(Less(Bound, r.waiting.age), r.waiting.ttl) ELSE r.waiting.ttl

\* ReadAcquire is read_acquire.lua.
\* RULE turn BREAKS ReaderIsServed
\*   A reader waits for a writer. When that leaves, another writer is quicker, each time.
\*   STEPS AskWrite Execute AskRead Execute Unwrite Execute Execute
ReadAcquire(r, q) ==
  LET o == q.who
      i == q.name
      waiting == WaitingWriter(r)
      row == IF Bound > 0 /\ q.waits /= "0" THEN [r EXCEPT !.row = WaiterTTL] ELSE r
  IN IF r.mode = "write" /\ <<o, i>> \notin r.writer THEN Refusal(row)
     ELSE IF /\ Bound > 0
             /\ r.mode /= "write"
             /\ Remaining(r, o, i) = 0
             /\ ~(q.waits = "2" /\ r.turn > 0)
             /\ waiting > 0
       THEN StepsBack(row, waiting)
     ELSE Result(TakeRead(r, o, i, q.number, q.lease), "taken", "")

\* ReadReenter is read_reenter.lua.
ReadReenter(r, q) ==
  IF Remaining(r, q.who, q.name) = 0 THEN Result(r, "gone", "")
  ELSE Result(TakeRead(r, q.who, q.name, q.number, q.lease), "taken", "")

\* ReadRelease is read_release.lua.
\* RULE lowerKeepsLease BREAKS Exclusion
\*   The second of two holds is released. Nobody knows whose lease was the longer one, and the remaining hold has the shorter.
\*   STEPS AskRead Execute Reenter Execute Unread Execute Tick AskWrite Execute
\*   WITH Leases = {1, 2}; MaxLevels = 2; Writers = {"b"}; Faulty = {}
\* RULE announceSooner BREAKS SleepersAreWoken
\*   A reader leaves early. The other's lease ends before that of the one that left, by which a writer went to sleep.
\*   STEPS AskWrite Execute Unread Execute Tick
\*   WITH Bound = 0
ReadRelease(r, q) ==
  LET o == q.who
      i == q.name
      count == r.reads[o][i]
      longest == Remaining(r, o, i)
      n == IF Rule("absoluteCount") THEN q.number ELSE Max(count - 1, 0)
      status == IF longest = 0 THEN "gone" ELSE "released"
      lowered == [r EXCEPT !.reads[o][i] = n, !.holds[o][i] = TLCEval([k \in 1..MaxLevels |->
        IF k = n /\ Rule("lowerKeepsLease") THEN Max(@[k], longest)
        ELSE IF k > n /\ k <= count THEN 0 ELSE @[k]])]
      left == [r EXCEPT !.reads[o][i] = 0, !.holds[o][i] = TLCEval([k \in 1..MaxLevels |-> IF k <= count THEN 0 ELSE @[k]])]
      others == LongestRead(left)
      sooner == others < Min(MaxNap, r.ttl) /\ Rule("announceSooner")
  IN IF count = 0 \/ r.mode = "none" THEN Result(r, "gone", "")
     ELSE IF n > 0 THEN IF longest = 0 THEN Result(r, "gone", "") ELSE Result(lowered, "lowered", "")
     ELSE IF r.mode = "write" THEN Result(left, status, "")
     ELSE IF ~Reading(left) THEN Result(Free(left), status, "0")
     ELSE Result(LastUntil(IF Rule("dropDeadReaders") THEN DropDead(left) ELSE left), status, IF sooner THEN "0" ELSE "")

\* WriterWaits is writer_waits.
WriterWaits(r, key) ==
  IF r.waiting.key \notin {<<>>, key} THEN r
  ELSE LET age == IF r.waiting.key = <<>> \/ r.waiting.age >= Bound + Pause THEN 0 ELSE r.waiting.age
       IN [r EXCEPT !.waiting = [key |-> key, age |-> age, ttl |-> WaiterTTL]]
StopWaiting(r, key) == IF r.waiting.key = key THEN [r EXCEPT !.waiting = NoWaiter] ELSE r

\* WriteAcquire is write_acquire.lua.
\* RULE readersExclude BREAKS Exclusion
\*   A writer is let in because the lock is not a writer's.
\*   STEPS AskRead Execute AskWrite Execute
\*   WITH Faulty = {}
WriteAcquire(r, q) ==
  LET key == <<q.who, q.name>>
      held == r.ttl > 0 /\ (r.mode = "write" \/ Rule("readersExclude"))
      taken == StopWaiting([r EXCEPT !.mode = "write", !.writer = {key}, !.ttl = Max(@, q.lease)], key)
  IN IF key \in r.writer THEN Result(taken, "taken", "")
     ELSE IF held
       THEN Refusal(IF Bound > 0 /\ q.waits /= "0" /\ r.mode = "read" THEN WriterWaits(r, key) ELSE r)
     ELSE IF Bound > 0 /\ r.turn > 0 /\ Rule("turn") THEN StepsBack(r, r.turn)
     ELSE Result(taken, "taken", "")

\* WriteRelease is write_release.lua.
\* RULE keepReadsOnDowngrade BREAKS Exclusion
\*   A writer that reads stops writing, and the lock is free although it reads on.
\*   STEPS AskRead Execute Unwrite Execute AskWrite Execute
\*   WITH Faulty = {}
\* RULE announceOnDowngrade BREAKS SleepersAreWoken
\*   A writer that reads stops writing. Readers that could read beside it sleep on.
\*   STEPS AskWrite Execute AskRead Execute Unwrite Execute
\*   WITH Bound = 0
WriteRelease(r, q) ==
  LET key == <<q.who, q.name>>
      held == key \in r.writer
      waited == Bound > 0 /\ r.waiting.key = key
      left == [(IF Bound > 0 THEN StopWaiting(r, key) ELSE r) EXCEPT !.writer = @ \ {key}]
      reads == Reading(left) /\ Rule("keepReadsOnDowngrade")
      after == IF reads THEN LastUntil([DropDead(left) EXCEPT !.mode = "read"]) ELSE Free(left)
      turned == IF Bound > 0 /\ r.row > 0 THEN [after EXCEPT !.turn = Turn, !.row = 0] ELSE after
  IN IF held THEN Result(turned, IF reads THEN "reading" ELSE "released",
                         IF reads /\ ~Rule("announceOnDowngrade") THEN "" ELSE "1")
     ELSE Result(left, "gone", IF waited THEN "1" ELSE "")

\* ReadRenew is read_renew.lua.
ReadRenew(r, o, i, lease) ==
  IF Remaining(r, o, i) = 0 THEN Result(r, "gone", "")
  ELSE Result([r EXCEPT !.ttl = Max(@, lease), !.holds[o][i] = TLCEval([k \in 1..MaxLevels |->
         IF k <= r.reads[o][i] /\ @[k] > 0 THEN Max(@[k], lease) ELSE @[k]])], "taken", "")

Run(r, q) ==
  CASE q.do = "read" -> ReadAcquire(r, q)
    [] q.do = "reenter" -> ReadReenter(r, q)
    [] q.do = "unread" -> ReadRelease(r, q)
    [] q.do = "write" -> WriteAcquire(r, q)
    [] q.do = "unwrite" -> WriteRelease(r, q)

\* RunOnce is Run(redis, request), whose request TLC evaluates once.
RunOnce(request) == CHOOSE got \in {Run(redis, q) : q \in {request}} : TRUE

\* Aged lets time pass in Redis.
Aged(r, d) ==
  LET older == [r EXCEPT
        !.holds = TLCEval([o \in Owners |-> TLCEval([i \in Names |-> TLCEval([n \in 1..MaxLevels |-> Less(@[o][i][n], d)])])]),
        !.waiting = IF @.ttl <= d THEN NoWaiter ELSE [@ EXCEPT !.ttl = @ - d, !.age = Min(@ + d, Bound + Pause)],
        !.row = Less(@, d),
        !.turn = Less(@, d)]
  IN IF r.ttl <= d THEN Free(older) ELSE [older EXCEPT !.ttl = @ - d]

-----------------------------------------------------------------------------
\* The owners. A request counts its lease from when it was sent.

NoCall == [do |-> "none"]
NoWrite == [name |-> 0, left |-> 0]
NoRead == [name |-> 0, left |-> 0, levels |-> 0]

\* Call is a call that begins. beside: the owner holds the lock in the other mode, under the same name.
Call(do, i, number, lease, beside) ==
  [do |-> do, name |-> i, number |-> number, lease |-> lease, left |-> lease, beside |-> beside,
   waited |-> FALSE, asleep |-> FALSE, behind |-> FALSE, wake |-> 0]

\* Request is what a call sends.
Request(o) ==
  LET c == call[o]
      waits == IF o \notin Patient THEN "0" ELSE IF c.waited /\ c.do = "read" THEN "2" ELSE "1"
  IN [who |-> o, do |-> c.do, name |-> c.name, number |-> c.number, lease |-> c.lease,
      waits |-> IF c.do \in {"read", "write"} THEN waits ELSE "0"]

Release(o, do, i) == [who |-> o, do |-> do, name |-> i, number |-> 0, lease |-> 0, waits |-> "0"]

Urgent(o) ==
  \/ call[o] /= NoCall /\ ~call[o].asleep
  \/ write[o].name > 0 /\ write[o].left = 0
  \/ read[o].name > 0 /\ read[o].left = 0
  \/ o \in Stays /\ read[o].left = 1

\* Busy are owners that others do not interrupt.
Busy == {o \in Atomic : Urgent(o) \/ \E cu \in due : cu.who = o}
Quiet == Busy = {}
May(o) == IF Atomic = {} THEN TRUE ELSE Quiet \/ o \in Busy

Idle(o) == call[o] = NoCall /\ May(o)

InUse(o, i) ==
  \/ write[o].name = i
  \/ read[o].name = i
  \/ call[o] /= NoCall /\ call[o].name = i
  \/ \E q \in late : q.who = o /\ q.name = i
  \/ \E cu \in due : cu.who = o /\ cu.name = i
  \/ redis.reads[o][i] > 0
  \/ \E n \in 1..MaxLevels : redis.holds[o][i][n] > 0
  \/ <<o, i>> \in redis.writer
  \/ redis.waiting.key = <<o, i>>

\* Fresh is the set that has the name of a new acquisition, if one is left.
\* RULE newNames BREAKS Exclusion
\*   A release that got no reply is executed after its owner has acquired the lock again, under the same name.
\*   STEPS Unread GiveUp AskRead Execute ExecuteLate AskWrite Execute
Fresh(o) ==
  LET unused == {i \in Names : ~InUse(o, i)}
  IN IF ~Rule("newNames") THEN {1}
     ELSE IF unused = {} THEN {} ELSE {CHOOSE i \in unused : \A j \in unused : i <= j}

\* Scheduled reports whether the cleaner has a cleanup: that of an attempt comes after the attempt.
Scheduled(cu) ==
  LET c == call[cu.who]
  IN cu \in due /\ ~(c /= NoCall /\ c.name = cu.name /\ c.do \in {"read", "write"} /\ ~c.beside)

Held(cu) == IF cu.mode = "read" THEN read[cu.who].name = cu.name ELSE write[cu.who].name = cu.name

CleanUpOf(o, i, mode) == [who |-> o, name |-> i, mode |-> mode]

\* AskRead and AskWrite are attempt.try, by acquire. An owner that writes reads under the same name.
AskRead(o) ==
  /\ o \in Readers /\ read[o].name = 0 /\ Idle(o)
  /\ \E lease \in Leases, i \in IF write[o].name > 0 THEN {write[o].name} ELSE Fresh(o) :
       /\ call' = [call EXCEPT ![o] = Call("read", i, 1, lease, write[o].name > 0)]
       /\ unconfirmed' = IF write[o].name > 0 THEN unconfirmed ELSE [unconfirmed EXCEPT ![o][i] = 0]
  /\ UNCHANGED <<redis, write, read, late, due>>

\* RULE noUpgrade BREAKS UpgradeNever
\*   An owner that reads asks to write, and waits for itself.
\*   STEPS AskRead Execute AskWrite
AskWrite(o) ==
  /\ o \in Writers /\ write[o].name = 0 /\ Idle(o)
  /\ Rule("noUpgrade") => read[o].name = 0
  /\ \E lease \in Leases, i \in IF read[o].name > 0 THEN {read[o].name} ELSE Fresh(o) :
       /\ call' = [call EXCEPT ![o] = Call("write", i, 1, lease, FALSE)]
       /\ unconfirmed' = [unconfirmed EXCEPT ![o][i] = 0]
  /\ UNCHANGED <<redis, write, read, late, due>>

\* Reenter is attempt.reenter.
Reenter(o) ==
  /\ read[o].left > 0 /\ read[o].levels < MaxLevels /\ Idle(o)
  /\ \E lease \in Leases :
       call' = [call EXCEPT ![o] = Call("reenter", read[o].name, read[o].levels + 1, lease, TRUE)]
  /\ UNCHANGED <<redis, write, read, unconfirmed, late, due>>

\* Untrusted is endUntrusted: the read hold of o ends if an unconfirmed release may remove it and no write hold keeps others out.
\* RULE distrustUnconfirmed BREAKS Exclusion
\*   A release of a read hold gets no reply. It removes the next one under the same name, which its owner trusts although it no longer writes.
\*   STEPS CleanUpUnanswered AskRead Execute ExecuteLate AskWrite Execute
\* RULE expiredProtectsNot BREAKS Exclusion
\*   The write lease is over, but the watchdog has not found that yet. A read hold begins, and an unconfirmed release removes it.
\*   STEPS CleanUpUnanswered AskRead Execute ExecuteLate Execute
Untrusted(o, w, r) ==
  /\ r[o].name > 0 /\ unconfirmed[o][r[o].name] > 0
  /\ IF Rule("expiredProtectsNot") THEN w[o].left = 0 ELSE w[o].name = 0
  /\ Rule("distrustUnconfirmed")

\* Trust sets what owners hold, and ends what is untrusted.
Trust(o, w, r, cleanups) ==
  LET ends == Untrusted(o, w, r)
  IN /\ write' = w
     /\ read' = IF ends THEN [r EXCEPT ![o] = NoRead] ELSE r
     /\ due' = cleanups \cup (IF ends THEN {CleanUpOf(o, r[o].name, "read")} ELSE {})

\* Unread and Unwrite are acquisition.release. What is released is not trusted from then on.
Unread(o) ==
  /\ read[o].left > 0 /\ o \notin Stays /\ Idle(o)
  /\ read' = [read EXCEPT ![o] = IF @.levels = 1 THEN NoRead ELSE [@ EXCEPT !.levels = @ - 1]]
  /\ call' = [call EXCEPT ![o] = Call("unread", read[o].name, read[o].levels - 1, 0, TRUE)]
  /\ UNCHANGED <<redis, write, unconfirmed, late, due>>

Unwrite(o) ==
  /\ write[o].left > 0 /\ Idle(o)
  /\ Trust(o, [write EXCEPT ![o] = NoWrite], read, due)
  /\ call' = [call EXCEPT ![o] = Call("unwrite", write[o].name, 0, 0, TRUE)]
  /\ UNCHANGED <<redis, unconfirmed, late>>

\* Woken has the calls after a message, which wakes those that sleep.
Woken(calls, told) ==
  IF told = "" THEN calls
  ELSE TLCEval([o \in Owners |-> IF calls[o] /= NoCall /\ calls[o].asleep
                         THEN [calls[o] EXCEPT !.asleep = FALSE, !.behind = FALSE, !.wake = 0, !.left = calls[o].lease] ELSE calls[o]])

Taken(o, c) ==
  IF c.left = 0 \* the reply took longer than the lease
    THEN Trust(o, write, read, due \cup {CleanUpOf(o, c.name, IF c.do = "write" THEN "write" ELSE "read")})
  ELSE IF c.do = "write" THEN Trust(o, [write EXCEPT ![o] = [name |-> c.name, left |-> c.left]], read, due)
  ELSE Trust(o, write, [read EXCEPT ![o] =
         [name |-> c.name, left |-> Max(@.left, c.left), levels |-> c.number]], due)

\* Execute runs the script of a call and delivers its reply: try, handleReply. A waiter that is refused sleeps as known.pause says.
\* Where TLC evaluates ENABLED or a property, it evaluates what LET defines at each use. What \E
\* chooses it evaluates once.
Execute(o) ==
  /\ call[o] /= NoCall
  /\ ~call[o].asleep
  /\ May(o)
  /\ \E c \in {call[o]}, got \in {RunOnce(Request(o))} :
       LET waits == got.status \in {"refused", "steps back"} /\ o \in Patient
           asleep == [c EXCEPT !.asleep = TRUE, !.behind = got.status = "steps back", !.wake = Min(got.nap, MaxNap),
                               !.waited = TRUE, !.left = 0]
       IN /\ redis' = got.redis
          /\ \E calls \in {[call EXCEPT ![o] = IF waits THEN asleep ELSE NoCall]} : call' = Woken(calls, got.told)
          /\ IF c.do = "reenter"
               THEN IF got.status = "taken" /\ c.left > 0 /\ read[o].name > 0 THEN Taken(o, c)
                    ELSE IF got.status = "taken" THEN UNCHANGED <<write, read, due>>
                    ELSE Trust(o, write, [read EXCEPT ![o] = NoRead], due)
             ELSE IF got.status = "taken" THEN Taken(o, c)
             ELSE UNCHANGED <<write, read, due>>
          /\ UNCHANGED <<unconfirmed, late>>

\* Counted adds an unconfirmed release. More than may be late need not be told apart.
Counted(o, i) == [unconfirmed EXCEPT ![o][i] = Min(@ + 1, MaxLate)]

Last(c) == c.do = "unread" /\ c.number = 0

\* GiveUp ends a call whose request may still be executed, or a wait between two requests, after which none is.
GiveUp(o) ==
  LET c == call[o]
      mode == IF c.do \in {"write", "unwrite"} THEN "write" ELSE "read"
      remains == Last(c) \/ c.do = "unwrite" \/ (c.do = "write" /\ c.waited /\ Bound > 0)
  IN /\ o \in Faulty /\ c /= NoCall /\ May(o)
     /\ IF c.asleep THEN late' = late
        ELSE /\ late' = late \cup {Request(o)}
             /\ Cardinality(late') <= MaxLate
     /\ call' = [call EXCEPT ![o] = NoCall]
     /\ unconfirmed' = IF Last(c) THEN Counted(o, c.name) ELSE unconfirmed
     /\ due' = IF remains THEN due \cup {CleanUpOf(o, c.name, mode)} ELSE due
     /\ UNCHANGED <<redis, write, read>>

\* Retry sends the request of a call once more.
Retry(o) ==
  LET c == call[o]
  IN /\ o \in Repeats /\ c /= NoCall /\ ~c.asleep /\ May(o)
     /\ late' = late \cup {Request(o)}
     /\ late' /= late /\ Cardinality(late') <= MaxLate
     /\ call' = [call EXCEPT ![o].left = c.lease]
     /\ unconfirmed' = IF Last(c) THEN Counted(o, c.name) ELSE unconfirmed
     /\ UNCHANGED <<redis, write, read, due>>

\* ExecuteLate runs a request that nobody waits for. The cleanup after an acquisition is repeated, because that may happen at any time.
\* RULE repeatCleanUp BREAKS NoGhost
\*   A request that got no reply is executed after all, and holds the lock for nobody.
\*   STEPS AskRead GiveUp ExecuteLate
RunLate(q) ==
  /\ Quiet
  /\ LET got == Run(redis, q)
         mode == IF q.do = "write" THEN "write" ELSE "read"
     IN /\ late' = late \ {q}
        /\ redis' = got.redis
        /\ call' = Woken(call, got.told)
        /\ due' = IF q.do \in {"read", "reenter", "write"} /\ Rule("repeatCleanUp")
                  THEN due \cup {CleanUpOf(q.who, q.name, mode)} ELSE due
        /\ UNCHANGED <<write, read, unconfirmed>>

ExecuteLate == \E q \in late : RunLate(q)

\* ConfirmLate runs a release that nobody waits for, and its reply arrives: confirmRelease.
\* RULE confirmOnlyUnheld BREAKS Exclusion
\*   An unconfirmed release has been executed and is no longer counted, but has removed the read hold of its owner.
\*   STEPS Unread GiveUp AskRead Execute ConfirmLate Unwrite Execute AskWrite Execute
Confirm(q) ==
  LET got == Run(redis, q)
      o == q.who
  IN /\ Quiet /\ q.do = "unread" /\ q.number = 0
     /\ late' = late \ {q}
     /\ redis' = got.redis
     /\ call' = Woken(call, got.told)
     /\ unconfirmed' = IF Rule("confirmOnlyUnheld") => (call[o] = NoCall /\ read[o].name = 0)
                       THEN [unconfirmed EXCEPT ![o][q.name] = Less(@, 1)] ELSE unconfirmed
     /\ UNCHANGED <<write, read, due>>

ConfirmLate == \E q \in late : Confirm(q)

\* Vanish drops a request that nobody waits for: its connection has ended.
Vanish ==
  /\ Quiet
  /\ \E q \in late : late' = late \ {q}
  /\ UNCHANGED <<redis, client>>

\* CleanUp is readWrite.cleanUp. Unless nothing is held under its name, it needs the session; it sends nothing while the owner holds the mode.
\* RULE cleanUpUnheld BREAKS Exclusion
\*   A cleanup after a read hold removes the next one under the same name.
\*   STEPS AskRead Execute CleanUp AskWrite Execute
SendCleanUp(cu) ==
  LET o == cu.who
      untaken == write[o].name /= cu.name /\ read[o].name /= cu.name
  IN /\ Scheduled(cu) /\ May(o)
     /\ untaken \/ call[o] = NoCall
     /\ due' = due \ {cu}
     /\ IF Held(cu) /\ Rule("cleanUpUnheld") THEN UNCHANGED <<redis, call, unconfirmed>>
        ELSE \E got \in {RunOnce(Release(o, IF cu.mode = "read" THEN "unread" ELSE "unwrite", cu.name))} :
             /\ redis' = got.redis
             /\ call' = Woken(call, got.told)
             /\ unconfirmed' = IF cu.mode = "read" /\ untaken /\ call[o] /= NoCall THEN Counted(o, cu.name) ELSE unconfirmed
     /\ UNCHANGED <<write, read, late>>

CleanUp == \E cu \in due : SendCleanUp(cu)

\* CleanUpUnanswered sends a cleanup that gets no reply. It is sent again.
\* RULE countCleanUp BREAKS Exclusion
\*   A cleanup gets no reply, and removes the next read hold under the same name.
\*   STEPS CleanUpUnanswered AskRead Execute ExecuteLate AskWrite Execute
LoseCleanUp(cu) ==
  LET o == cu.who
      untaken == write[o].name /= cu.name /\ read[o].name /= cu.name
  IN /\ Scheduled(cu) /\ May(o) /\ o \in Faulty
     /\ untaken \/ call[o] = NoCall
     /\ ~Held(cu)
     /\ late' = late \cup {Release(o, IF cu.mode = "read" THEN "unread" ELSE "unwrite", cu.name)}
     /\ late' /= late /\ Cardinality(late') <= MaxLate
     /\ unconfirmed' = IF cu.mode = "read" /\ Rule("countCleanUp") THEN Counted(o, cu.name) ELSE unconfirmed
     /\ UNCHANGED <<redis, write, read, call, due>>

CleanUpUnanswered == \E cu \in due : LoseCleanUp(cu)

\* Expire is the watchdog, which finds that a lease is over: acquisition.lose.
\* RULE cleanUpExpired BREAKS NoGhost
\*   The lease of a write hold is over, but its owner's read hold keeps the hash and with it the write field.
\*   STEPS AskWrite Execute AskRead Execute Tick Expire
Expire(o, mode) ==
  LET w == IF mode = "write" THEN [write EXCEPT ![o] = NoWrite] ELSE write
      r == IF mode = "read" THEN [read EXCEPT ![o] = NoRead] ELSE read
      cu == CleanUpOf(o, IF mode = "write" THEN write[o].name ELSE read[o].name, mode)
  IN /\ IF mode = "write" THEN write[o].name > 0 /\ write[o].left = 0 ELSE read[o].name > 0 /\ read[o].left = 0
     /\ May(o)
     /\ Trust(o, w, r, IF Rule("cleanUpExpired") THEN due \cup {cu} ELSE due)
     /\ UNCHANGED <<redis, call, unconfirmed, late>>

\* Renew is the watchdog of a reader that stays.
Renew(o) ==
  LET lease == Longest(Leases)
  IN /\ o \in Stays /\ Idle(o) /\ read[o].left > 0 /\ read[o].left < lease
     /\ \E got \in {ReadRenew(redis, o, read[o].name, lease)} :
          /\ redis' = got.redis
          /\ read' = [read EXCEPT ![o] = IF got.status = "taken" THEN [@ EXCEPT !.left = lease] ELSE NoRead]
     /\ UNCHANGED <<write, call, unconfirmed, late, due>>

\* Tick lets time pass.
Tick(d) ==
  /\ Quiet
  /\ Prompt => \A o \in Owners : ~Urgent(o) /\ write[o].left /= 1
  /\ redis' = Aged(redis, d)
  /\ write' = TLCEval([o \in Owners |-> [write[o] EXCEPT !.left = Less(@, d)]])
  /\ read' = TLCEval([o \in Owners |-> [read[o] EXCEPT !.left = Less(@, d)]])
  /\ call' = TLCEval([o \in Owners |->
       IF call[o] = NoCall THEN NoCall
       ELSE IF call[o].asleep /\ call[o].wake <= d
         THEN [call[o] EXCEPT !.asleep = FALSE, !.behind = FALSE, !.wake = 0, !.left = call[o].lease]
       ELSE [call[o] EXCEPT !.left = Less(@, d), !.wake = Less(@, d)]])
  /\ UNCHANGED <<unconfirmed, late, due>>

-----------------------------------------------------------------------------
Init ==
  /\ redis = [mode |-> "none", ttl |-> 0, reads |-> NoReads, holds |-> NoHolds, writer |-> {},
              waiting |-> NoWaiter, row |-> 0, turn |-> 0]
  /\ write = [o \in Owners |-> NoWrite]
  /\ read = [o \in Owners |-> NoRead]
  /\ call = [o \in Owners |-> NoCall]
  /\ unconfirmed = [o \in Owners |-> [i \in Names |-> 0]]
  /\ late = {}
  /\ due = {}

Next ==
  \/ \E o \in Owners :
       \/ AskRead(o) \/ AskWrite(o) \/ Reenter(o) \/ Unread(o) \/ Unwrite(o)
       \/ Execute(o) \/ GiveUp(o) \/ Retry(o) \/ Renew(o)
       \/ Expire(o, "write") \/ Expire(o, "read")
  \/ ExecuteLate \/ ConfirmLate \/ Vanish
  \/ CleanUp \/ CleanUpUnanswered
  \/ \E d \in Ticks : Tick(d)

\* Time passes, requests are executed, and the watchdog and the cleanup do their work. Nobody has to acquire, and readers need not release. Writers must: where
\* the lease of one runs out no turn begins, and a reader might lose the race with the next writer each time.
Fairness ==
  /\ SF_vars(\E d \in Ticks : Tick(d))
  /\ \A o \in Owners : /\ WF_vars(Execute(o)) /\ WF_vars(Renew(o)) /\ WF_vars(Unwrite(o))
                       /\ WF_vars(Expire(o, "write")) /\ WF_vars(Expire(o, "read"))
  /\ WF_vars(CleanUp)

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
\* Used is a state without the unconfirmed releases of names that are not in use: they are forgotten before such a name is used again.
Used == <<redis, write, read, call, late, due,
  [o \in Owners |-> [i \in Names |-> IF unconfirmed[o][i] = 0 \/ InUse(o, i) THEN unconfirmed[o][i] ELSE 0]]>>

Writes(o) == write[o].name > 0 /\ write[o].left > 0
Reads(o) == read[o].name > 0 /\ read[o].left > 0

\* A writer that trusts its lock is alone.
Exclusion == \A o \in Owners : Writes(o) => \A p \in Owners : o /= p => ~Writes(p) /\ ~Reads(p)

\* An owner that reads does not ask to write.
UpgradeNever == \A o \in Owners : read[o].name > 0 => call[o].do /= "write"

\* Redis has no hold of an owner that has nothing under way or due.
NoGhost == \A o \in Owners, i \in Names :
  LET called == call[o] /= NoCall /\ call[o].name = i
  IN /\ Remaining(redis, o, i) > 0 => read[o].name = i \/ called \/ CleanUpOf(o, i, "read") \in due
     /\ <<o, i>> \in redis.writer => write[o].name = i \/ called \/ CleanUpOf(o, i, "write") \in due

\* A lock of readers lasts as long as the longest living hold.
LastsAsItsHolds == redis.mode = "read" => redis.ttl = LongestRead(redis)

\* Nobody sleeps until the end of a lease before a lock that it could have. One that steps back sleeps for Bound at most, even if the other's lease ends sooner.
SleepersAreWoken == \A o \in Owners :
  call[o] /= NoCall /\ call[o].asleep /\ ~call[o].behind => RunOnce(Request(o)).status /= "taken"

WriterIsServed == \A o \in Writers : call[o].do = "write" ~> write[o].name > 0
ReaderIsServed == \A o \in Readers : call[o].do = "read" ~> read[o].name > 0
=============================================================================
