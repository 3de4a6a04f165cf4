package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server/archive"
	"github.com/nats-io/nats.go"
)

const askRestore = "$JS.API.STREAM.RESTORE."

// pieceBytes is how much a server gets at once. It syncs each message of a piece, and gives up on one that takes it 5 s.
const pieceBytes = 32 << 10

// restoreStream makes a stream of messages, which keep their sequences and times, under a configuration.
func restoreStream(ctx context.Context, nc *nats.Conn, s *Stream, config json.RawMessage, messages func(func(*message) error) error) error {
	request, err := json.Marshal(map[string]any{"config": config, "state": struct{}{}})
	if err != nil {
		return err
	}
	answer, err := ask(ctx, nc, askRestore+s.Name, request)
	if err != nil {
		return fmt.Errorf("restoring the stream %s: %w", s.Name, err)
	}
	r, w := io.Pipe()
	go func() {
		err := pack(w, s, messages)
		if err != nil {
			err = fmt.Errorf("reading the backup: %s", err) //nolint:errorlint // an end of file within it is not the end of the stream
		}
		_ = w.CloseWithError(err)
	}()
	err = sendPieces(ctx, nc, answer.Deliver, r)
	_ = r.CloseWithError(io.ErrClosedPipe)
	if err != nil {
		return fmt.Errorf("restoring the stream %s: %w", s.Name, err)
	}
	return nil
}

// pack writes the archive of a stream as a server reads it.
func pack(w io.Writer, s *Stream, messages func(func(*message) error) error) error {
	enc := s2.NewWriter(w, s2.WriterUncompressed(), s2.WriterBlockSize(pieceBytes), s2.WriterConcurrency(1))
	a := archive.NewWriter(enc)
	first := s.First
	if s.Messages == 0 {
		first = s.Last + 1
	}
	state, err := json.Marshal(map[string]any{"messages": s.Messages, "bytes": 0, "first_seq": first, "last_seq": s.Last, "consumer_count": 0,
		"first_ts": time.Time{}, "last_ts": s.LastTime})
	if err != nil {
		return err
	}
	if err := a.WriteHeader(&archive.Header{Name: stateName, Timestamp: time.Now().UnixNano(), PayloadSize: int64(len(state))}); err != nil {
		return err
	}
	if _, err := a.Write(state); err != nil {
		return err
	}
	if err := messages(func(m *message) error { return writeMessage(a, m) }); err != nil {
		return err
	}
	return errors.Join(a.WriteHeader(&archive.Header{}), a.Close(), enc.Close()) // the empty one is the end
}

// sendPieces sends all that r has, and the end, to which the server answers once the stream is there.
func sendPieces(ctx context.Context, nc *nats.Conn, subject string, r io.Reader) error {
	buf := make([]byte, min(pieceBytes, int(nc.MaxPayload())))
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if err := sendPiece(ctx, nc, subject, buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			msg, err := nc.RequestWithContext(ctx, subject, nil) // as long as the server takes to read it all
			if err != nil {
				return err
			}
			return refusedBy(msg.Data)
		case err != nil:
			return err
		}
	}
}

func sendPiece(ctx context.Context, nc *nats.Conn, subject string, piece []byte) error {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	msg, err := nc.RequestWithContext(ctx, subject, piece)
	if err != nil {
		return err
	}
	return refusedBy(msg.Data)
}

func refusedBy(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	var a answered
	if err := json.Unmarshal(data, &a); err != nil {
		return err
	}
	if a.Error != nil {
		return a.Error
	}
	return nil
}
