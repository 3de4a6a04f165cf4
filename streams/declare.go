package streams

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Codes of the server's errors.json: what the server, or the account, may store is less
// than the stream's bound.
const (
	codeStorageExceeded jetstream.ErrorCode = 10047
	codeAccountExceeded jetstream.ErrorCode = 10002
)

// Ensure creates a stream or checks that the existing one keeps the
// promise. Byte limits are the operator's: an existing stream keeps its own.
func Ensure(ctx context.Context, js jetstream.JetStream, cfg jetstream.StreamConfig) error {
	s, err := js.Stream(ctx, cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = js.CreateStream(ctx, cfg)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			s, err = js.Stream(ctx, cfg.Name)
		}
	}
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) && (api.ErrorCode == codeStorageExceeded || api.ErrorCode == codeAccountExceeded) {
		return fmt.Errorf("%w: stream %s of %d MiB; pass a smaller --events-bytes and --shards-bytes (events_bytes, shards_bytes), or raise max_file_store of the server or its account: %w",
			ErrStoreTooSmall, cfg.Name, cfg.MaxBytes>>20, err)
	}
	if err != nil {
		return fmt.Errorf("streams: %s: %w", cfg.Name, err)
	}
	return checkStream(s.CachedInfo().Config, cfg)
}

// checkStream compares what matters for the promise.
func checkStream(got, want jetstream.StreamConfig) error {
	bad := func(what string) error {
		return fmt.Errorf("%w: stream %s %s; change it with your NATS tools, or move it away and let Almanac create it", ErrUnsafe, want.Name, what)
	}
	switch {
	case got.Discard != jetstream.DiscardNew:
		return bad("discards old messages when full, it must refuse new ones (discard: new)")
	case got.MaxAge != 0:
		return bad(fmt.Sprintf("drops messages after %s whether stored or not (max_age), it must keep them", got.MaxAge))
	case got.Retention != jetstream.LimitsPolicy:
		return bad("drops messages once a consumer has them (retention), it must keep them (limits)")
	case got.MaxMsgsPerSubject > 0 || got.MaxMsgs > 0:
		return bad("has a limit of messages (max_msgs, max_msgs_per_subject), it may only have one of bytes")
	case got.NoAck:
		return bad("does not acknowledge (no_ack)")
	case want.MaxMsgSize <= 0 && got.MaxMsgSize > 0:
		return bad("has a limit of message size (max_msg_size), below which dead letters might not fit")
	case want.MaxMsgSize > 0 && (got.MaxMsgSize <= 0 || got.MaxMsgSize > want.MaxMsgSize):
		return bad(fmt.Sprintf("takes messages above %d bytes (max_msg_size), which could not be kept as dead letters", want.MaxMsgSize))
	case got.Storage != jetstream.FileStorage:
		return bad("is kept in memory, it must be on disk")
	case got.PersistMode == jetstream.AsyncPersistMode:
		return bad("acknowledges before it writes (persist_mode: async)")
	case want.AllowAtomicPublish && !got.AllowAtomicPublish:
		return bad("does not allow atomic batches (allow_atomic)")
	case !got.AllowDirect:
		return bad("does not allow direct gets (allow_direct)")
	}
	return nil
}

// AllowAtomic lets a stream take atomic batches: a bucket's does not when created.
func AllowAtomic(ctx context.Context, js jetstream.JetStream, stream string) error {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("streams: %s: %w", stream, err)
	}
	cfg := s.CachedInfo().Config
	if cfg.AllowAtomicPublish {
		return nil
	}
	cfg.AllowAtomicPublish = true
	if _, err := js.UpdateStream(ctx, cfg); err != nil {
		return fmt.Errorf("streams: allowing atomic batches on %s: %w", stream, err)
	}
	return nil
}
