------------------------------ MODULE RedLock ------------------------------
\* The lock of package redlock over several Redis servers: acquisitions, their parts on the nodes,
\* requests and replies that are late or lost, renewals, nodes that rejoin, and servers that restart
\* and have forgotten something. Phases and states are those of redlock/states.go; the servers do
\* what lua/quorum_acquire.lua, renew.lua and release.lua do.
\*
\* Time passes in ticks, and there is no clock: the variables say for how long something still lasts.
\* The drift is one tick, and so is the second of the uptime: a server whose clock is fast may end a
\* lease, or count itself again, a tick early.
\*
\* Left out, and why that is sound:
\*   - Nested levels, extensions with another lease, the local queue: they change neither who has a
\*     node nor until when it is trusted.
\*   - The states freed, gone and kept: a part that has ended is missing again. And release due: a
\*     release may be executed at any time after its part has ended, also before it would be sent.
\*   - The phases releasing and closed: released and left do the same to the nodes.
\*   - Epoch, FsyncAlways: the model has the default options.
\*
\* Two things ask more of the rules than the code does. A name is used again as soon as nothing under
\* way carries it, which keeps the model finite; in the code each part has a name of its own. And a
\* node that has the lock for a name already votes for that name again, which the code does not count.
\*
\* Bounds: the constants below. Messages are not ordered. What happens at once costs nothing; each
\* time that something is late is counted.
EXTENDS Integers, FiniteSets, TLC

\* RULE quorum BREAKS OneHolder
\*   Half of the nodes are enough: two halves have no node in common.
\*   STEPS Ask Vote Ask Vote
\* RULE delayedRestart BREAKS OneHolder
\*   A node restarts, has forgotten what it granted, and is counted at once: it is in both quorums.
\*   STEPS Ask Vote Vote Restart Vote
\* RULE wholeSecond BREAKS OneHolder
\*   The uptime is up to a second too long, and its node counts before the leases that it has
\*   forgotten are over.
\*   STEPS Ask Vote Vote Restart Tick Vote
\* RULE delayForHolder BREAKS OneHolder
\*   A restarted node has restored a hold that its owner has released since, and counts for that owner
\*   at once, although it may have granted the lock to another meanwhile. In the code the rule is a
\*   second line of defence: no owner asks again under a name that it has released.
\*   STEPS Unlock Release Ask Vote Vote Restart Vote
\*   WITH MaxAsks = 3; MaxLate = 0
\* RULE maxLease BREAKS OneHolder
\*   A lease is longer than the delay of a restarted node. It is still trusted when that node, which
\*   has forgotten it, counts again.
\*   STEPS Ask Vote Vote Restart Tick Vote
\*   WITH MaxLease = 2; Leases = {4}
\* RULE driftMargin BREAKS OneHolder
\*   Servers whose clock is a little fast end their leases while the owner trusts them.
\*   STEPS Ask Vote Vote Tick Tick Vote Vote
\*   WITH MaxRestarts = 0
\* RULE countFromRequest BREAKS OneHolder
\*   The reply is late, and the owner counts the lease from its arrival: the server has counted since
\*   before that.
\*   STEPS Ask Vote Tick LateVote Vote
\*   WITH Nodes = {n1}; MaxLate = 3; MaxRestarts = 0
\* RULE quorumDeadline BREAKS OneHolder
\*   One part is renewed, and the others end: the owner trusts the latest deadline of all, not the
\*   quorum's.
\*   STEPS Ask Vote Vote Tick Renew Renewal Tick Vote
\*   WITH MaxRestarts = 0; MaxRenewals = 1
\* RULE askOnce BREAKS OneHolder
\*   A release is late. Its node is asked again under the same name, and grants the lock; then the
\*   release frees it, and another gets it.
\*   STEPS Unlock Ask Vote Release Vote
\*   WITH MaxRestarts = 0; MaxAsks = 3; MaxLate = 0
\* RULE lossIsFinal BREAKS NoGap
\*   The owner was stopped when its quorum ended, and another had the lock meanwhile. A node that is
\*   asked again makes the quorum whole, as if nothing had happened.
\*   STEPS Ask Vote Tick Tick Rejoin Vote Unlock Vote
\*   WITH Nodes = {n1}; Names = {1, 2}; MaxRestarts = 0; MaxRejoins = 1
\* RULE releaseAll BREAKS NoGhost
\*   An attempt fails before a node has replied, and the part that this grants later is not released.
\*   STEPS Ask Fail Vote
\* RULE randomWait BREAKS OwnerIsServed
\*   Contenders ask again at the same time for ever, and one gets less than a quorum each time.
\*   STEPS Ask Ask Vote Vote Fail Ask

CONSTANTS
  Nodes,       \* the servers
  Owners,      \* of the lock
  Names,       \* how many names an owner has on a node: 1..k
  Fresh,       \* TRUE: a name is used once
  MaxLease,    \* Options.MaxLease
  Leases,      \* the leases that owners ask for
  MaxAsks,     \* how many acquisitions all owners begin; Unlimited: any number, as for the others
  MaxRenewals, \* how many renewals are sent
  MaxRejoins,  \* how many nodes are asked again
  MaxLate,     \* how often time passes over what is under way, or something else is late
  MaxGivenUp,  \* how many requests are given up
  MaxRestarts, \* how often a server restarts
  MaxLeft,     \* how often an owner dies, or leaves its lock to its lease
  Without      \* the rules that are left out

\* To find out whether states are symmetric, TLC compares their variables in this order.
VARIABLES
  phase,  \* owner -> phase of its latest acquisition
  node,   \* node -> what the server knows
  parts,  \* owner -> node -> name -> part
  name,   \* owner -> node -> name of the part of the latest acquisition
  broken, \* owner -> whether another has held the lock since it acquired it
  spent   \* what the limits count

vars == <<phase, parts, name, node, broken, spent>>

Rule(r) == r \notin Without

Unlimited == 99
Drift == 1
Second == 1
Nobody == <<>>
Quorum == IF Rule("quorum") THEN Cardinality(Nodes) \div 2 + 1 ELSE Cardinality(Nodes) \div 2
Symmetry == Permutations(Nodes) \cup Permutations(Owners)

Max(a, b) == IF a > b THEN a ELSE b
Less(a) == IF a > 0 THEN a - 1 ELSE 0

\* A part has a state of states.go. left is for how long it may be trusted. request is what is under
\* way for it: "asks" or "renews"; age, for how long; late, whether the server has executed it and its
\* yes is late. release: a release is under way, or will be sent again. used: the name was used.
NoPart == [state |-> "missing", left |-> 0, request |-> "", late |-> FALSE, age |-> 0, lease |-> 0,
           release |-> FALSE, used |-> FALSE]

Init ==
  /\ phase = [o \in Owners |-> "none"]
  /\ parts = [o \in Owners |-> [n \in Nodes |-> [i \in Names |-> NoPart]]]
  /\ name = [o \in Owners |-> [n \in Nodes |-> 1]]
  /\ node = [n \in Nodes |->
       [owner |-> Nobody, ttl |-> 0, delay |-> 0, stray |-> FALSE, past |-> Nobody]]
  /\ broken = [o \in Owners |-> FALSE]
  /\ spent = [asks |-> 0, renewals |-> 0, rejoins |-> 0, late |-> 0, givenUp |-> 0,
              restarts |-> 0, left |-> 0]

\* Spend counts only what is limited: other counts would make more states.
Spend(what, limit) ==
  /\ limit = Unlimited \/ spent[what] < limit
  /\ spent' = IF limit = Unlimited THEN spent ELSE [spent EXCEPT ![what] = @ + 1]
SpendIf(condition, what, limit) == IF condition THEN Spend(what, limit) ELSE UNCHANGED spent

Part(o, n) == parts[o][n][name[o][n]]
Over(o) == phase[o] \notin {"asking", "held"}
UnderWay == \E o \in Owners, n \in Nodes, i \in Names :
              parts[o][n][i].request # "" \/ parts[o][n][i].release
Awaits(o) == \E n \in Nodes : Part(o, n).state = "asked"
Missing(o, n) == Part(o, n).state \notin {"asked", "granted"}

\* acquisition.trustedUntil: a quorum of parts can be trusted. ps are the owner's.
TrustsIn(o, ps) ==
  LET granted == {n \in Nodes : ps[n][name[o][n]].state = "granted"}
      trusted == {n \in granted : ps[n][name[o][n]].left > 0}
  IN IF Rule("quorumDeadline") THEN Cardinality(trusted) >= Quorum
     ELSE Cardinality(granted) >= Quorum /\ trusted # {}
Trusts(o) == TrustsIn(o, parts[o])
Believes(o) == phase[o] = "held" /\ Trusts(o)

\* The names that nothing under way carries. No part is requested twice under one name.
Usable(p) == ~p.used /\ p.request = "" /\ p.state \in {"missing", "release sent"}
             /\ (Rule("askOnce") => ~p.release)
NamesFor(o, n) ==
  LET usable == {i \in Names : Usable(parts[o][n][i])}
  IN IF ~Rule("askOnce") /\ name[o][n] \in usable THEN {name[o][n]}
     ELSE {i \in usable : \A j \in usable : i <= j}

\* part.ask.
Asked(p, lease) == [p EXCEPT !.state = "asked", !.request = "asks", !.lease = lease, !.used = Fresh]

\* The part has no request under way any more.
Idle(p) == [p EXCEPT !.request = "", !.late = FALSE, !.age = 0,
                     !.lease = IF p.state = "granted" THEN @ ELSE 0]
Lost(p) == Idle([p EXCEPT !.state = "missing", !.left = 0])
Released(p) == [p EXCEPT !.state = "release sent", !.release = TRUE, !.left = 0]

\* acquisition.end. What a node has been asked for is released when it has granted it.
Ended(o, as, ps) ==
  /\ phase' = [phase EXCEPT ![o] = as]
  /\ broken' = [broken EXCEPT ![o] = FALSE]
  /\ parts' = [parts EXCEPT ![o] = [n \in Nodes |-> [ps[n] EXCEPT ![name[o][n]] =
       CASE @.state = "granted" -> Released(@)
         [] @.state = "asked"   -> [@ EXCEPT !.state = "unwanted"]
         [] OTHER               -> @]]]

\* Until when a part can be trusted whose reply arrives now.
Left(p) ==
  p.lease - (IF Rule("driftMargin") THEN Drift ELSE 0)
          - (IF Rule("countFromRequest") THEN p.age ELSE 0)

-----------------------------------------------------------------------------
\* attempt.round: asks all nodes, except those with too much under way (wait.Pool.Stalled).
Ask(o, lease) ==
  /\ Over(o)
  /\ Rule("maxLease") => lease <= MaxLease
  /\ Cardinality({n \in Nodes : NamesFor(o, n) # {}}) >= Quorum
  /\ Spend("asks", IF Rule("randomWait") THEN MaxAsks ELSE Unlimited)
  /\ LET to(n) == IF NamesFor(o, n) = {} THEN name[o][n] ELSE CHOOSE i \in NamesFor(o, n) : TRUE
     IN /\ name' = [name EXCEPT ![o] = [n \in Nodes |-> to(n)]]
        /\ parts' = [parts EXCEPT ![o] = [n \in Nodes |->
             IF NamesFor(o, n) = {} THEN @[n] ELSE [@[n] EXCEPT ![to(n)] = Asked(@, lease)]]]
  /\ phase' = [phase EXCEPT ![o] = "asking"]
  /\ UNCHANGED <<node, broken>>

\* part.Renewed: a node without a part is asked again, after a renewal of the others.
Rejoin(o, n) ==
  /\ phase[o] = "held" /\ (Rule("lossIsFinal") => Trusts(o))
  /\ Missing(o, n)
  /\ Spend("rejoins", MaxRejoins)
  /\ \E i \in NamesFor(o, n) :
       /\ name' = [name EXCEPT ![o][n] = i]
       /\ parts' = [parts EXCEPT ![o][n][i] = Asked(@, MaxLease)]
  /\ node' = IF node[n].owner = <<o, name[o][n]>> THEN [node EXCEPT ![n].stray = TRUE] ELSE node
  /\ UNCHANGED <<phase, broken>>

\* The watchdog of the node's client sends a renewal.
Renew(o, n) ==
  /\ phase[o] = "held"
  /\ LET p == Part(o, n) IN p.state = "granted" /\ p.left > 0 /\ p.request = ""
  /\ Spend("renewals", MaxRenewals)
  /\ parts' = [parts EXCEPT ![o][n][name[o][n]].request = "renews"]
  /\ UNCHANGED <<phase, name, node, broken>>

-----------------------------------------------------------------------------
\* What a server has when a fast clock has ended the lease early, and whether it may have.
Free(n) == [node[n] EXCEPT !.owner = Nobody, !.ttl = 0, !.stray = FALSE]
Early(n) == IF node[n].ttl \in 1..Drift THEN BOOLEAN ELSE {FALSE}
Seen(n, early) == IF early THEN Free(n) ELSE node[n]

\* Whether the server counts itself, by its uptime: of a second more, and by a fast clock.
Counts(n) == IF node[n].delay = 0 THEN {TRUE}
             ELSE IF node[n].delay <= Second + Drift THEN {TRUE, FALSE} ELSE {FALSE}

\* part.Run, when it has the node's reply. p is the part, and yes whether the node grants it.
Reply(o, n, i, p, yes) ==
  LET late == Left(p) <= 0
      lost == p.state = "asked" /\ phase[o] = "held" /\ ~Trusts(o)
              /\ Rule("lossIsFinal") \* acquisition.do: check
      new == IF ~yes \/ (p.state = "unwanted" /\ ~Rule("releaseAll")) THEN Lost(p)
             ELSE IF p.state = "unwanted" \/ late THEN Idle(Released(p))
             ELSE Idle([p EXCEPT !.state = "granted", !.left = Left(p)])
      all == [parts[o] EXCEPT ![n][i] = new]
      holds == phase[o] = "asking" /\ TrustsIn(o, all) \* attempt.succeed
  IN IF lost THEN Ended(o, "lost", all)
     ELSE /\ parts' = [parts EXCEPT ![o] = all]
          /\ phase' = IF holds THEN [phase EXCEPT ![o] = "held"] ELSE phase
          /\ broken' = IF ~holds THEN broken ELSE [other \in Owners |->
               IF other = o THEN FALSE ELSE broken[other] \/ phase[other] = "held"]

\* Whether a reply may be late. The actions of Next that follow choose what else may differ only once
\* they can happen: TLC tries each choice that is not behind a guard, in each state.
MayBeLate == IF MaxLate = Unlimited \/ spent.late < MaxLate THEN BOOLEAN ELSE {FALSE}

\* lua/quorum_acquire.lua, and the reply. A request that was given up leaves a stray hold.
VoteAs(o, n, i, late, early, counts) ==
  LET p == parts[o][n][i] IN
  /\ p.request = "asks" /\ ~p.late
  /\ early \in Early(n) /\ counts \in Counts(n)
  /\ LET seen == Seen(n, early)
         mine == seen.owner = <<o, i>>
         yes == (seen.owner = Nobody \/ mine) /\ (counts \/ (mine /\ ~Rule("delayForHolder")))
         awaited == p.state \in {"asked", "unwanted"}
     IN /\ node' = [node EXCEPT ![n] =
             IF ~yes THEN seen
             ELSE [seen EXCEPT !.owner = <<o, i>>, !.ttl = Max(@, p.lease), !.stray = ~awaited]]
        /\ CASE ~awaited -> /\ ~late
                            /\ parts' = [parts EXCEPT ![o][n][i] = Idle(p)]
                            /\ UNCHANGED <<phase, broken>>
             [] awaited /\ late -> /\ yes /\ p.state = "asked"
                                   /\ parts' = [parts EXCEPT ![o][n][i].late = TRUE]
                                   /\ UNCHANGED <<phase, broken>>
             [] OTHER -> Reply(o, n, i, p, yes)
  /\ SpendIf(late, "late", MaxLate)
  /\ UNCHANGED name

Vote(o, n, i) ==
  /\ parts[o][n][i].request = "asks" /\ ~parts[o][n][i].late
  /\ \E early \in Early(n), counts \in Counts(n), late \in MayBeLate :
       VoteAs(o, n, i, late, early, counts)

\* A vote arrives that was late.
LateVote(o, n, i) ==
  LET p == parts[o][n][i] IN
  /\ p.request = "asks" /\ p.late
  /\ Reply(o, n, i, p, TRUE)
  /\ UNCHANGED <<name, node, spent>>

\* lua/renew.lua, and the reply. The watchdog does not revive a lease that has expired.
RenewalAs(o, n, i, late, early) ==
  LET p == parts[o][n][i] IN
  /\ p.request = "renews" /\ ~p.late
  /\ early \in Early(n)
  /\ LET seen == Seen(n, early)
         yes == seen.owner = <<o, i>>
     IN /\ node' = [node EXCEPT ![n] = IF yes THEN [seen EXCEPT !.ttl = Max(@, p.lease)] ELSE seen]
        /\ late => yes /\ p.state = "granted"
        /\ parts' = [parts EXCEPT ![o][n][i] =
             IF late THEN [p EXCEPT !.late = TRUE]
             ELSE IF p.state # "granted" THEN Idle(p)
             ELSE IF yes THEN Idle([p EXCEPT !.left = IF @ > 0 THEN Max(@, Left(p)) ELSE 0])
             ELSE Lost(p)]
  /\ SpendIf(late, "late", MaxLate)
  /\ UNCHANGED <<phase, name, broken>>

Renewal(o, n, i) ==
  /\ parts[o][n][i].request = "renews" /\ ~parts[o][n][i].late
  /\ \E early \in Early(n), late \in MayBeLate : RenewalAs(o, n, i, late, early)

LateRenewal(o, n, i) ==
  LET p == parts[o][n][i] IN
  /\ p.request = "renews" /\ p.late
  /\ parts' = [parts EXCEPT ![o][n][i] =
       Idle([p EXCEPT !.left = IF @ > 0 THEN Max(@, Left(p)) ELSE 0])]
  /\ UNCHANGED <<phase, name, node, broken, spent>>

\* lua/release.lua. Its reply may be lost; it is executed again then.
ReleaseAs(o, n, i, again) ==
  LET p == parts[o][n][i] IN
  /\ p.release
  /\ SpendIf(again, "givenUp", MaxGivenUp)
  /\ node' = [node EXCEPT ![n] = IF @.owner # <<o, i>> THEN @
       ELSE [Free(n) EXCEPT !.past = IF spent.restarts < MaxRestarts THEN <<o, i>> ELSE Nobody]]
  /\ parts' = IF again THEN parts
              ELSE [parts EXCEPT ![o][n][i] =
                [@ EXCEPT !.release = FALSE,
                          !.state = IF @ = "release sent" THEN "missing" ELSE @]]
  /\ UNCHANGED <<phase, name, broken>>

Release(o, n, i) ==
  /\ parts[o][n][i].release
  /\ \E again \in BOOLEAN : ReleaseAs(o, n, i, again)

\* The outcome of a request becomes unknown: its connection broke, or the CommandTimeout is over.
\* It may be executed later, or never.
GiveUpAs(o, n, i, gone) ==
  LET p == parts[o][n][i] IN
  /\ p.request # "" /\ p.state \in {"asked", "unwanted", "granted"}
  /\ p.late => gone
  /\ Spend("givenUp", MaxGivenUp)
  /\ LET now == IF p.state = "granted" THEN p
                ELSE IF p.state = "unwanted" /\ ~Rule("releaseAll") THEN [p EXCEPT !.state = "missing"]
                ELSE Released(p)
     IN parts' = [parts EXCEPT ![o][n][i] =
          IF gone \/ p.request = "renews" THEN Idle(now) ELSE [now EXCEPT !.age = 0]]
  /\ UNCHANGED <<phase, name, node, broken>>

GiveUp(o, n, i) ==
  /\ parts[o][n][i].request # ""
  /\ MaxGivenUp = Unlimited \/ spent.givenUp < MaxGivenUp
  /\ \E gone \in BOOLEAN : GiveUpAs(o, n, i, gone)

-----------------------------------------------------------------------------
\* attempt.round gives up: no quorum is possible, or has replied in time.
Fail(o) ==
  /\ phase[o] = "asking" /\ ~Trusts(o)
  /\ Ended(o, "failed", parts[o])
  /\ SpendIf(Awaits(o), "late", MaxLate)
  /\ UNCHANGED <<name, node>>

\* acquisition.Release.
Unlock(o) ==
  /\ Believes(o)
  /\ Ended(o, "released", parts[o])
  /\ SpendIf(Awaits(o), "late", MaxLate)
  /\ UNCHANGED <<name, node>>

\* acquisition.check.
Lose(o) ==
  /\ phase[o] = "held" /\ ~Trusts(o)
  /\ Ended(o, "lost", parts[o])
  /\ UNCHANGED <<name, node, spent>>

\* part.lost: the watchdog reports that the deadline of a part is over. The code releases it when
\* the acquisition ends: its release is as late as that.
Lapse(o, n) ==
  /\ LET p == Part(o, n) IN
       /\ p.state = "granted" /\ p.left = 0
       /\ Trusts(o) \/ phase[o] = "asking" \/ ~Rule("lossIsFinal")
  /\ parts' = [parts EXCEPT ![o][n][name[o][n]] = Idle(Released(@))]
  /\ UNCHANGED <<phase, name, node, broken, spent>>

\* acquisition.Leave, or the process dies. The leases run out.
Leave(o) ==
  /\ ~Over(o)
  /\ Spend("left", MaxLeft)
  /\ phase' = [phase EXCEPT ![o] = "left"]
  /\ broken' = [broken EXCEPT ![o] = FALSE]
  /\ parts' = [parts EXCEPT ![o] = [n \in Nodes |-> [i \in Names |-> [NoPart EXCEPT !.used =
       parts[o][n][i].used]]]]
  /\ node' = [n \in Nodes |-> [node[n] EXCEPT !.stray =
       @ \/ node[n].owner \in {<<o, i>> : i \in Names}]]
  /\ UNCHANGED name

\* A server restarts. It has kept its data, or forgotten all, or restored a hold released since.
RestartWith(n, data) ==
  /\ Spend("restarts", MaxRestarts)
  /\ data = "kept" => node[n].owner # Nobody
  /\ data = "past" => node[n].past # Nobody
  /\ LET delay == IF ~Rule("delayedRestart") THEN 0
                  ELSE MaxLease + (IF Rule("wholeSecond") THEN Second ELSE 0)
         now == CASE data = "kept"  -> node[n]
                  [] data = "empty" -> Free(n)
                  [] data = "past"  -> [node[n] EXCEPT !.owner = node[n].past, !.ttl = MaxLease,
                                                       !.stray = TRUE]
     IN node' = [node EXCEPT ![n] = [now EXCEPT !.delay = delay, !.past = Nobody]]
  /\ UNCHANGED <<phase, parts, name, broken>>

Restart(n) ==
  /\ MaxRestarts = Unlimited \/ spent.restarts < MaxRestarts
  /\ \E data \in {"kept", "empty", "past"} : RestartWith(n, data)

\* Time passes. No request is older than its lease is long.
Tick ==
  /\ SpendIf(UnderWay, "late", MaxLate)
  /\ node' = [n \in Nodes |-> IF node[n].ttl = 1 THEN [Free(n) EXCEPT !.delay = Less(@)]
                              ELSE [node[n] EXCEPT !.ttl = Less(@), !.delay = Less(@)]]
  /\ parts' = [o \in Owners |-> [n \in Nodes |-> [i \in Names |->
       LET p == parts[o][n][i] IN
       [p EXCEPT !.left = Less(@),
                 !.age = IF p.state \notin {"asked", "granted"} \/ p.request = "" THEN 0
                         ELSE IF @ < p.lease THEN @ + 1 ELSE @]]]]
  /\ UNCHANGED <<phase, name, broken>>

Step(o) ==
  \/ \E lease \in Leases : Ask(o, lease)
  \/ Fail(o) \/ Unlock(o) \/ Lose(o) \/ Leave(o)
  \/ \E n \in Nodes : Rejoin(o, n) \/ Renew(o, n) \/ Lapse(o, n)
  \/ \E n \in Nodes, i \in Names :
       \/ LateVote(o, n, i) \/ LateRenewal(o, n, i)
       \/ Vote(o, n, i) \/ Renewal(o, n, i)
       \/ Release(o, n, i)
       \/ GiveUp(o, n, i)

Next ==
  \/ \E o \in Owners : Step(o)
  \/ \E n \in Nodes : Restart(n)
  \/ Tick

Spec == Init /\ [][Next]_vars

\* Liveness. A round in which nobody interferes is one step. Contenders wait for a random time, longer
\* than a round and doubled each time: they may collide MaxAsks times in a row, and then one is alone
\* for a round: that bound is the rule randomWait, and stands for a probability. And none is always the later one (strong fairness). Time stands still: releases alone
\* must serve them, not leases that end.
Round(o) ==
  LET free == {n \in Nodes : node[n].owner = Nobody /\ node[n].delay = 0} IN
  /\ Rule("randomWait")
  /\ \A any \in Owners : Over(any)
  /\ ~UnderWay
  /\ Cardinality(free) >= Quorum
  /\ parts' = [parts EXCEPT ![o] = [n \in Nodes |-> IF n \notin free THEN @[n] ELSE
       [@[n] EXCEPT ![name[o][n]] = [@ EXCEPT !.state = "granted", !.lease = MaxLease,
                                              !.left = Left([lease |-> MaxLease, age |-> 0])]]]]
  /\ node' = [n \in Nodes |-> IF n \notin free THEN node[n] ELSE
       [node[n] EXCEPT !.owner = <<o, name[o][n]>>, !.ttl = MaxLease]]
  /\ phase' = [phase EXCEPT ![o] = "held"]
  /\ spent' = [spent EXCEPT !.asks = 0]
  /\ UNCHANGED <<name, broken>>

NextLive == \E o \in Owners : Step(o) \/ Round(o)

Progress(o) ==
  \/ Fail(o) \/ Unlock(o) \/ Lose(o)
  \/ \E n \in Nodes, i \in Names : \/ ReleaseAs(o, n, i, FALSE)
                                   \/ VoteAs(o, n, i, FALSE, FALSE, TRUE)

Live == Init /\ [][NextLive]_vars /\ \A o \in Owners :
  WF_vars(Progress(o)) /\ WF_vars(\E lease \in Leases : Ask(o, lease)) /\ SF_vars(Round(o))

-----------------------------------------------------------------------------
\* No two owners trust a quorum at the same time.
OneHolder == \A a, b \in Owners : Believes(a) /\ Believes(b) => a = b

\* A holder has had the lock all the time: no other owner has had it since.
NoGap == \A o \in Owners : Believes(o) => ~broken[o]

\* What a node has of an acquisition that is over is under release, or about to be, unless nobody
\* knows of it: a request was executed after its release, a server has restored it, or its owner has
\* left. Such a hold ends with its lease, because nobody renews it.
NoGhost ==
  \A n \in Nodes, o \in Owners, i \in Names :
    node[n].owner = <<o, i>> /\ ~node[n].stray =>
      LET p == parts[o][n][i] IN
      \/ p.release \/ p.state = "unwanted" \/ p.request # ""
      \/ ~Over(o) /\ name[o][n] = i /\ p.state \in {"asked", "granted"}

\* An owner that goes on asking gets the lock again and again, as long as others release it.
OwnerIsServed == \A o \in Owners : []<>(phase[o] = "held")
=============================================================================
