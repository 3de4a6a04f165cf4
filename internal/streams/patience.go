package streams

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

const (
	// silence is how long a server alone may be silent before its answer counts as cut: five times the second after
	// which nats.go gives a fetch up.
	silence = 5 * time.Second
	// tries is how often a cut answer is asked for again, from where it was cut.
	tries = 2

	// Servers that elect drop what is asked while a stream has no leader, which takes 5 to 8 s after one died. So a
	// question is asked again beside those that wait, and any answer will do: lanes went on 0.7 s after the new leader,
	// where they had waited out 5 s. A server that is slow is asked the more.
	askedAgain = 700 * time.Millisecond
	elected    = schemas.Election
	// alike is how many replicas are asked for the same short time, before one that is slow is given more.
	alike = 3
	// noLeaderPause is how soon a server is asked again that answered that there is no leader.
	noLeaderPause = 100 * time.Millisecond

	// Waits for the answer to a batch. A server alone answers, or its disk is slow: 10 s is the time that JetStream
	// itself gives a batch. Of those that elect none comes where the leader died, and what became of the batch is read.
	batchAlone   = 10 * time.Second
	batchElected = 2 * time.Second
)

// BatchWait is how long to wait for the answer to a batch before what became of it is read.
func BatchWait(nc *nats.Conn) time.Duration {
	if schemas.Elects(nc) {
		return batchElected
	}
	return batchAlone
}

// Asked asks NATS for what may be asked again, also while an earlier question is still under way, until an answer comes:
// a server alone twice, those that elect as often as an election needs. It bounds each wait, since nats.go waits as
// long as ctx when that has an end. ErrCut when no answer came.
func Asked[T any](ctx context.Context, nc *nats.Conn, ask func(context.Context) (T, error)) (answer T, err error) {
	ctx = over(ctx, nc)
	if schemas.Elects(nc) {
		return untilElected(ctx, ask)
	}
	for range tries {
		asked, done := bounded(ctx, silence)
		answer, err = ask(asked)
		err = done(err)
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	return answer, unanswered(ctx, err)
}

// untilElected asks again beside the questions that wait.
func untilElected[T any](ctx context.Context, ask func(context.Context) (T, error)) (answer T, err error) {
	type reply struct {
		answer T
		err    error
	}
	asked, done := bounded(ctx, elected)
	replies := make(chan reply)
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-next.C:
			next.Reset(askedAgain)
			go func() {
				answer, err := ask(asked)
				select {
				case replies <- reply{answer, err}:
				case <-asked.Done():
				}
			}()
		case r := <-replies:
			if r.err == nil || !leaderless(r.err) {
				return r.answer, unanswered(ctx, done(r.err))
			}
			err = r.err
			next.Reset(noLeaderPause)
		case <-asked.Done():
			if err == nil || context.Cause(ctx) != nil {
				err = asked.Err()
			}
			if err = done(err); errors.Is(err, ErrDenied) {
				return answer, err
			}
			return answer, cut(ctx, err)
		}
	}
}

// codeNoLeader is of the server's errors.json: "JetStream system temporarily unavailable", as a stream without a leader is.
const codeNoLeader jetstream.ErrorCode = 10008

// codeOffline is of the same file: "stream is offline".
const codeOffline jetstream.ErrorCode = 10118

// leaderless reports whether an answer says that there is no leader now, or is none: the next one may come from a leader.
func leaderless(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeNoLeader ||
		errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, jetstream.ErrNoStreamResponse)
}
