---------------------------- MODULE HandOverSteps ----------------------------
\* HandOver, with the step that led to each state.
\*
\* In a random trace each step is as likely as any other, so most would be of failures. TracesSpec
\* has a calm before each, whose length depends on the trace and on the number of failures.

EXTENDS HandOver

VARIABLES step, calm

Do(do) == step' = [do |-> do]
DoFor(do, who) == step' = [do |-> do, who |-> who]
DoIf(do, who, flag) == step' = [do |-> do, who |-> who, flag |-> flag]
DoWith(do, who, ticket) == step' = [do |-> do, who |-> who, ticket |-> ticket]

StepsInit == Init /\ step = [do |-> "Init"]

StepsNext ==
  \/ \E w \in Waiters :
       \/ Join(w) /\ DoFor("Join", w)
       \/ Ask(w) /\ DoFor("Ask", w)
       \/ ExecuteAsk(w) /\ DoFor("ExecuteAsk", w)
       \/ Acquire(w) /\ DoFor("Acquire", w)
       \/ AcquireTooLate(w) /\ DoFor("AcquireTooLate", w)
       \/ Refuse(w) /\ DoFor("Refuse", w)
       \/ LoseReply(w) /\ DoFor("LoseReply", w)
       \/ Abandon(w) /\ DoFor("Abandon", w)
       \/ LateAsk(w) /\ DoFor("LateAsk", w)
       \/ Accept(w) /\ DoFor("Accept", w)
       \/ Leave(w) /\ DoFor("Leave", w)
       \/ \E b \in BOOLEAN :
            \/ Release(w, b) /\ DoIf("Release", w, b)
            \/ ExecuteRelease(w, b) /\ DoIf("ExecuteRelease", w, b)
            \/ CleanUp(w, b) /\ DoIf("CleanUp", w, b)
       \/ Settle(w) /\ DoFor("Settle", w)
       \/ LoseSettlement(w) /\ DoFor("LoseSettlement", w)
       \/ AbandonRelease(w) /\ DoFor("AbandonRelease", w)
       \/ LateRelease(w) /\ DoFor("LateRelease", w)
       \/ Lose(w) /\ DoFor("Lose", w)
       \/ GiveUpCleanup(w) /\ DoFor("GiveUpCleanup", w)
       \/ \E t \in Tickets :
            \/ Deliver(w, t) /\ DoWith("Deliver", w, t)
            \/ LoseMessage(w, t) /\ DoWith("LoseMessage", w, t)
  \/ \E p \in Processes :
       \/ Hear(p) /\ DoFor("Hear", p)
       \/ Disconnect(p) /\ DoFor("Disconnect", p)
       \/ Subscribe(p) /\ DoFor("Subscribe", p)
       \/ Die(p) /\ DoFor("Die", p)
  \/ Expire /\ Do("Expire")
  \/ ExpireGhost /\ Do("ExpireGhost")
  \/ ExpireWaiters /\ Do("ExpireWaiters")
  \/ JavaWaits /\ Do("JavaWaits")
  \/ JavaAsks /\ Do("JavaAsks")
  \/ JavaReleases /\ Do("JavaReleases")

StepsSpec == StepsInit /\ calm = <<>> /\ [][StepsNext /\ UNCHANGED calm]_<<vars, step, calm>>

Disruptions ==
  {"LoseReply", "Abandon", "Leave", "LoseSettlement", "AbandonRelease", "GiveUpCleanup",
   "LoseMessage", "Disconnect", "Die", "Expire", "ExpireWaiters", "JavaWaits"}

\* A waiter asks instead of accepting a grant.
Declines == step'.do = "Ask" /\ waiter[step'.who].state = "Granted"

Calm == [left : {0}, of : 0..59]
After(c) == [c EXCEPT !.left = (c.of * 7 + world.faults * 11) % 20]

TracesNext ==
  /\ StepsNext
  /\ IF step'.do \in Disruptions \/ Declines THEN calm.left = 0 /\ calm' = After(calm)
     ELSE calm' = [calm EXCEPT !.left = IF @ = 0 THEN 0 ELSE @ - 1]

TracesSpec ==
  StepsInit /\ calm \in {After(c) : c \in Calm} /\ [][TracesNext]_<<vars, step, calm>>

=============================================================================
