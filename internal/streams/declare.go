package streams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// Codes of the server's errors.json: what the server, or the account, may store is less
// than the stream's bound.
const (
	codeStorageExceeded jetstream.ErrorCode = 10047
	codeAccountExceeded jetstream.ErrorCode = 10002
)

// Ensure creates a stream or checks that the existing one keeps the
// promise. An existing stream keeps its bound of bytes, unless the operator said the bound of cfg.
func Ensure(ctx context.Context, js jetstream.JetStream, cfg jetstream.StreamConfig, said bool) error {
	s, err := Open(ctx, js, cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = Asked(ctx, js.Conn(), func(ctx context.Context) (jetstream.Stream, error) { return js.CreateStream(ctx, cfg) })
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			s, err = Open(ctx, js, cfg.Name)
		}
	}
	if err != nil {
		return TooSmall("stream "+cfg.Name, cfg.MaxBytes, fmt.Errorf("streams: %s: %w", cfg.Name, err))
	}
	got := s.CachedInfo().Config
	if slices.Equal(got.Subjects, []string{schemas.SubjectsLanes}) && !slices.Equal(cfg.Subjects, got.Subjects) {
		got.Subjects = cfg.Subjects
		if err := update(ctx, js, got); err != nil {
			return fmt.Errorf("streams: %s takes %s and is to take %s: %w", cfg.Name, schemas.SubjectsLanes, strings.Join(cfg.Subjects, ", "), err)
		}
	}
	if err := errors.Join(checkStream(got, cfg), CheckReplicas(got, cfg)); err != nil || !said || got.MaxBytes == cfg.MaxBytes {
		return err
	}
	return Bound(ctx, js, cfg.Name, cfg.MaxBytes)
}

// Bound gives a stream that exists another bound of bytes, at once. One below what the stream holds takes nothing
// from it: the stream refuses until it holds less.
func Bound(ctx context.Context, js jetstream.JetStream, stream string, bytes int64) error {
	s, err := Open(ctx, js, stream)
	if err != nil {
		return fmt.Errorf("streams: %s: %w", stream, err)
	}
	cfg := s.CachedInfo().Config
	cfg.MaxBytes = bytes
	if err := update(ctx, js, cfg); err != nil {
		return TooSmall("stream "+stream, bytes, fmt.Errorf("streams: bounding %s: %w", stream, err))
	}
	return nil
}

// TooSmall returns ErrStoreTooSmall with the options that help, where a server refused
// to make what would hold up to bytes because it may not store that much; else err, which says so where
// a server alone was to have copies.
func TooSmall(what string, bytes int64, err error) error {
	api := (*jetstream.APIError)(nil)
	if !errors.As(err, &api) {
		return err
	}
	switch api.ErrorCode {
	case codeStorageExceeded, codeAccountExceeded:
	case codeNotClustered:
		return fmt.Errorf("%w; this NATS server is alone: copies (--replicas) need three servers that know each other", err)
	case codeNoPeers:
		return fmt.Errorf("%w: %s of %d MiB (%s): there are fewer servers than copies (--replicas), or too few of them have room; pass a smaller --events-bytes, --shards-bytes, --docs-bytes and --timers-bytes, or raise max_file_store of the servers",
			ErrStoreTooSmall, what, bytes>>20, api.Description)
	default:
		return err
	}
	return fmt.Errorf("%w: %s of %d MiB (%s); pass a smaller --events-bytes and --shards-bytes (events_bytes, shards_bytes), make another stream smaller with `almanac streams apply`, or raise max_file_store of the server or its account",
		ErrStoreTooSmall, what, bytes>>20, api.Description)
}

// trialTimeout bounds the removal of the trial stream, also after an interrupt.
const trialTimeout = 5 * time.Second

// Fits removes what a process that was killed left of a trial, and reports whether the server has room for the bounds of those streams that it
// does not have yet, all together: ErrStoreTooSmall when not. No server tells a client how much it may
// store. So an empty stream of that size is created, which reserves it, and removed at once.
func Fits(ctx context.Context, js jetstream.JetStream, cfgs ...jetstream.StreamConfig) (err error) {
	_ = js.DeleteStream(ctx, schemas.StreamTrial) // mostly there is none, and what stays is found too small below
	var names []string
	var bytes int64
	for _, cfg := range cfgs {
		_, err := Open(ctx, js, cfg.Name)
		if err == nil {
			continue
		}
		if !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("streams: %s: %w", cfg.Name, err)
		}
		names, bytes = append(names, cfg.Name), bytes+cfg.MaxBytes
	}
	if bytes == 0 {
		return nil
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), trialTimeout)
		defer cancel()
		if gone := js.DeleteStream(ctx, schemas.StreamTrial); gone != nil && !errors.Is(gone, jetstream.ErrStreamNotFound) {
			err = errors.Join(err, fmt.Errorf("streams: removing the empty stream %s, which reserves %d MiB: %w; the next `almanac config check` removes it", schemas.StreamTrial, bytes>>20, gone))
		}
	}()
	cfg := jetstream.StreamConfig{
		Name: schemas.StreamTrial, Subjects: []string{"almanac.trial"}, Description: "Almanac: a check of the room, may be removed",
		Storage: jetstream.FileStorage, MaxBytes: bytes, Replicas: cfgs[0].Replicas,
	}
	_, err = Asked(ctx, js.Conn(), func(ctx context.Context) (jetstream.Stream, error) { return js.CreateOrUpdateStream(ctx, cfg) })
	if err != nil {
		return TooSmall(strings.Join(names, ", ")+" together, bounds", bytes, fmt.Errorf("streams: a trial of the room for %s: %w", strings.Join(names, ", "), err))
	}
	return nil
}

// checkStream compares what matters for the promise.
func checkStream(got, want jetstream.StreamConfig) error {
	bad := func(what string) error {
		return fmt.Errorf("%w: stream %s %s; change it with a program for NATS, such as nats, which Almanac does not ship. Almanac creates a stream that is not there", ErrUnsafe, want.Name, what)
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
	case want.AllowRollup && !got.AllowRollup:
		return bad("does not allow a message to replace those before it (allow_rollup_hdrs), which frees what is archived")
	case want.AllowMsgTTL && !got.AllowMsgTTL:
		return bad("does not allow a message to expire (allow_msg_ttl), by which locks end")
	}
	return nil
}

// PrepareBucket lets a bucket's stream take atomic batches and messages that expire: it does neither when created.
func PrepareBucket(ctx context.Context, js jetstream.JetStream, stream string) error {
	s, err := Open(ctx, js, stream)
	if err != nil {
		return fmt.Errorf("streams: %s: %w", stream, err)
	}
	cfg := s.CachedInfo().Config
	if cfg.AllowAtomicPublish && cfg.AllowMsgTTL {
		return nil
	}
	cfg.AllowAtomicPublish, cfg.AllowMsgTTL = true, true
	if err := update(ctx, js, cfg); err != nil {
		return fmt.Errorf("streams: allowing atomic batches and messages that expire on %s: %w", stream, err)
	}
	return nil
}

func update(ctx context.Context, js jetstream.JetStream, cfg jetstream.StreamConfig) error {
	_, err := Asked(ctx, js.Conn(), func(ctx context.Context) (jetstream.Stream, error) { return js.UpdateStream(ctx, cfg) })
	return err
}
