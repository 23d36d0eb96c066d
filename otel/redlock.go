package holdfastotel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"holdfast/rlock"
)

var (
	withQuorum    = []metric.RecordOption{outcomeOf(quorum)}
	withoutQuorum = []metric.RecordOption{outcomeOf(noQuorum)}
)

// outcomeOf returns an option with an outcome.
func outcomeOf(outcome string) metric.RecordOption {
	return metric.WithAttributeSet(attribute.NewSet(AttrOutcome.String(outcome)))
}

// RoundEnd implements [rlock.RoundTracer].
func (t *Tracer) RoundEnd(ctx context.Context, d rlock.RoundEnd) {
	outcome := withQuorum
	if d.Granted < d.Want {
		outcome = withoutQuorum
	}
	t.round.Record(exemplar(ctx), d.Took.Seconds(), outcome...)
	c := t.callOf(ctx)
	if c == nil {
		return
	}
	refused := make([]string, len(d.Refused))
	for i, n := range d.Refused {
		refused[i] = n.Server + " " + ErrorType(n.Err)
	}
	c.span.AddEvent("round", trace.WithAttributes(AttrRound.Int(d.Round),
		AttrGranted.Int(d.Granted), AttrWant.Int(d.Want), AttrRefused.StringSlice(refused)))
}

// NodeFailed implements [rlock.NodeTracer].
func (t *Tracer) NodeFailed(d rlock.NodeFailed) {
	about := []attribute.KeyValue{AttrOperation.String(d.Operation),
		AttrErrorType.String(ErrorType(d.Err))}
	if d.Server != "" {
		about = append(about, AttrServer.String(d.Server))
	}
	t.nodeFailures.Add(context.Background(), 1, metric.WithAttributes(about...))
}
