---------------------------- MODULE RedLockSteps ----------------------------
\* RedLock, with the step that led to each state. integration/model/redlock_test.go plays its traces
\* against the scripts, and redlock/tla_redlock_test.go against acquisitions.
EXTENDS RedLock

VARIABLE step

All(o, do) == step' = [do |-> do, who |-> o]
At(o, n, do) == step' = [do |-> do, who |-> o, on |-> n]
For(o, n, i, do) == step' = [do |-> do, who |-> o, on |-> n, name |-> i]

StepOf(o) ==
  \/ \E lease \in Leases : Ask(o, lease) /\ step' = [do |-> "Ask", who |-> o, lease |-> lease]
  \/ Fail(o) /\ All(o, "Fail")
  \/ Unlock(o) /\ All(o, "Unlock")
  \/ Lose(o) /\ All(o, "Lose")
  \/ Leave(o) /\ All(o, "Leave")
  \/ \E n \in Nodes :
       \/ Rejoin(o, n) /\ At(o, n, "Rejoin")
       \/ Renew(o, n) /\ At(o, n, "Renew")
       \/ Lapse(o, n) /\ At(o, n, "Lapse")
  \/ \E n \in Nodes, i \in Names :
       \/ LateVote(o, n, i) /\ For(o, n, i, "LateVote")
       \/ LateRenewal(o, n, i) /\ For(o, n, i, "LateRenewal")
       \/ \E late, early \in BOOLEAN :
            \/ \E counts \in BOOLEAN :
                 /\ VoteAs(o, n, i, late, early, counts)
                 /\ step' = [do |-> "Vote", who |-> o, on |-> n, name |-> i, late |-> late,
                             early |-> early, counts |-> counts]
            \/ /\ RenewalAs(o, n, i, late, early)
               /\ step' = [do |-> "Renewal", who |-> o, on |-> n, name |-> i, late |-> late,
                           early |-> early]
       \/ \E again \in BOOLEAN :
            /\ ReleaseAs(o, n, i, again)
            /\ step' = [do |-> "Release", who |-> o, on |-> n, name |-> i, again |-> again]
       \/ \E gone \in BOOLEAN :
            /\ GiveUpAs(o, n, i, gone)
            /\ step' = [do |-> "GiveUp", who |-> o, on |-> n, name |-> i, gone |-> gone]

StepsNext ==
  \/ \E o \in Owners : StepOf(o)
  \/ \E n \in Nodes, data \in {"kept", "empty", "past"} :
       RestartWith(n, data) /\ step' = [do |-> "Restart", on |-> n, data |-> data]
  \/ Tick /\ step' = [do |-> "Tick"]

StepsInit == Init /\ step = [do |-> "Init"]
StepsSpec == StepsInit /\ [][StepsNext]_<<vars, step>>
=============================================================================
