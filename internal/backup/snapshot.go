package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server/archive"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	askSnapshot = "$JS.API.STREAM.SNAPSHOT."

	// askTimeout bounds the first answer of a server.
	askTimeout = 30 * time.Second
	// chunkTimeout is how long a piece may take: a server gives up after 5 s without an answer to one.
	chunkTimeout = 30 * time.Second
	// inFlight bounds the bytes that a server sends before they are acknowledged.
	inFlight  = 8 << 20
	pieceSize = 128 << 10

	stateName = "state.json"
)

// answered is what the server answers to a question about a snapshot.
type answered struct {
	Error   *jetstream.APIError `json:"error"`
	Config  json.RawMessage     `json:"config"`
	Deliver string              `json:"deliver_subject"`
}

// taken is what a snapshot says of its stream.
type taken struct {
	config json.RawMessage
	last   uint64 // the last sequence when it began
}

// snapshot reads the messages of a stream, in order, from its leader, as far as they were there when it began. A message
// that is deleted meanwhile may be left out.
func snapshot(ctx context.Context, nc *nats.Conn, stream string, f func(*message) error) (taken, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return taken{}, fmt.Errorf("%w %s: %w", ErrSnapshot, stream, err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := sub.SetPendingLimits(-1, 4*inFlight); err != nil {
		return taken{}, fmt.Errorf("%w %s: %w", ErrSnapshot, stream, err)
	}
	request, err := json.Marshal(map[string]any{"deliver_subject": inbox, "no_consumers": true, "chunk_size": pieceSize, "window_size": inFlight})
	if err != nil {
		return taken{}, err
	}
	answer, err := ask(ctx, nc, askSnapshot+stream, request)
	if err != nil {
		return taken{}, fmt.Errorf("%w %s: %w", ErrSnapshot, stream, err)
	}
	r, w := io.Pipe()
	received := make(chan error, 1)
	go func() {
		err := receive(ctx, sub, w)
		_ = w.CloseWithError(err) // nil is the end
		received <- err
	}()
	last, err := unpack(r, f)
	if err == nil {
		_, err = io.Copy(io.Discard, r) // so that the sender is not held up
	} else {
		cancel()
	}
	_ = r.CloseWithError(io.ErrClosedPipe)
	if got := <-received; err == nil {
		err = got
	}
	if err != nil {
		return taken{}, fmt.Errorf("%w %s: %w", ErrSnapshot, stream, err)
	}
	return taken{answer.Config, last}, nil
}

// ask puts a question of JetStream's.
func ask(ctx context.Context, nc *nats.Conn, subject string, request []byte) (*answered, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	msg, err := nc.RequestWithContext(ctx, subject, request)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", subject, err)
	}
	var a answered
	if err := json.Unmarshal(msg.Data, &a); err != nil {
		return nil, fmt.Errorf("the answer to %s: %w", subject, err)
	}
	if a.Error != nil {
		return nil, a.Error
	}
	return &a, nil
}

// receive writes the pieces as they come, each of which names its number, and acknowledges them.
func receive(ctx context.Context, sub *nats.Subscription, w io.Writer) error {
	for next := 1; ; next++ {
		msg, err := nextPiece(ctx, sub)
		if err != nil {
			return err
		}
		if status := msg.Header.Get("Status"); len(msg.Data) == 0 {
			if status != "" && status != "204" {
				return fmt.Errorf("the server ended it: %s %s", status, msg.Header.Get("Description"))
			}
			return nil
		}
		if msg.Reply != "" { // the last one is not acknowledged
			tokens := strings.Split(msg.Reply, ".")
			if n, err := strconv.Atoi(tokens[len(tokens)-1]); err != nil || n != next {
				return fmt.Errorf("piece %d came as %q: the connection lost some", next, msg.Reply)
			}
		}
		if _, err := w.Write(msg.Data); err != nil {
			return err
		}
		if msg.Reply == "" {
			continue
		}
		if err := msg.Respond(nil); err != nil {
			return err
		}
	}
}

func nextPiece(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	return sub.NextMsgWithContext(ctx)
}

// unpack calls f with each message of a snapshot, and returns the last sequence that the stream had given.
func unpack(r io.Reader, f func(*message) error) (last uint64, err error) {
	a := archive.NewReader(s2.NewReader(r))
	head, err := a.Next()
	if errors.Is(err, archive.ErrInvalidArchive) || err == nil && head.Name != stateName {
		return 0, fmt.Errorf("%w: it is of an older form, which NATS servers before 2.15 give", ErrSnapshot)
	}
	if err != nil {
		return 0, err
	}
	var state struct {
		LastSeq uint64 `json:"last_seq"`
	}
	if err := json.NewDecoder(io.LimitReader(a, 1<<20)).Decode(&state); err != nil {
		return 0, fmt.Errorf("the state of the stream: %w", err)
	}
	whole := false
	err = readMessages(a, func(m *message) (bool, error) {
		if m.seq == 0 && m.subject == "" { // the end
			whole = true
			return false, nil
		}
		return true, f(m)
	})
	if err == nil && !whole {
		err = errors.New("it ends before its end")
	}
	return state.LastSeq, err
}
