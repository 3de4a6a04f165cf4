package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// storeCheckTimeout bounds what `config check` asks a NATS server.
const storeCheckTimeout = 10 * time.Second

// checkStore returns streams.ErrStoreTooSmall with the options that help, when the store
// of the NATS server that is named, or the disk of the data directory, is too small for
// the streams that are not there yet. A server that does not answer is not a fault of the settings.
func (a *app) checkStore(ctx context.Context, s *settings) error {
	if !isURL(s.NATS) {
		return checkDisk(s)
	}
	ctx, cancel := context.WithTimeout(ctx, storeCheckTimeout)
	defer cancel()
	limits := streamLimits(s, schemas.DefaultStreamLimits)
	bucket := jetstream.StreamConfig{Name: schemas.KVStream, MaxBytes: limits.RegistryBytes}
	copies := jetstream.StreamConfig{Name: schemas.CopiesStream, MaxBytes: limits.RegistryBytes}
	err := func() error {
		nc, err := streams.Connect(s.NATS, natsOptions(s, endpoints{nats: s.NATS}, "config check")...)
		if err != nil {
			return err
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err != nil {
			return err
		}
		return streams.Fits(ctx, js, append(schemas.Streams(limits), bucket, copies)...)
	}()
	if err != nil && !errors.Is(err, streams.ErrStoreTooSmall) {
		a.note("whether the streams fit the store of NATS was not checked: %s", inWords(err))
		return nil
	}
	return err
}

// checkDisk compares the streams that an up would create with the disk. Where both
// sizes are said they are believed.
func checkDisk(s *settings) error {
	if storeBytes(s) > 0 || s.EventsBytes+s.ShardsBytes == 0 {
		return nil
	}
	dir := embedded.NATSDir(s.Data)
	if _, err := os.Stat(filepath.Join(dir, "jetstream")); err == nil {
		return nil // they are there, and keep their bounds
	}
	store, err := embedded.DefaultStoreLimit(dir)
	if err != nil {
		return err
	}
	l := streamLimits(s, schemas.StreamLimitsFor(store))
	if l.Bytes() > store {
		return fmt.Errorf("%w: EVENTS of %s and SHARDS of %s are more than the %s that the disk of %s has for them; pass a smaller --events-bytes and --shards-bytes (events_bytes, shards_bytes), or another --data",
			streams.ErrStoreTooSmall, schemas.FormatBytes(float64(l.EventsBytes)), schemas.FormatBytes(float64(l.ShardsBytes)), schemas.FormatBytes(float64(store)), s.Data)
	}
	return nil
}
