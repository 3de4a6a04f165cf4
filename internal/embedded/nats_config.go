package embedded

import (
	"crypto/tls"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/almanac-events/almanac/internal/access"
)

// NATSConfig says how the embedded NATS server runs. Dir is required, all else has a default.
type NATSConfig struct {
	// Dir holds the streams. Created when missing.
	Dir string

	// Host to listen on. Default "127.0.0.1". Beyond loopback the server needs TLS and Passwords.
	Host string

	// TLS of the connections of other machines; its GetConfigForClient gives each the newest certificate. Commands of
	// this machine are shown another (NATSLocalName). InProcessConn needs none. Nil: plain text.
	TLS *tls.Config

	// Port to listen on. 0 or less: a free one, chosen at the first start and kept. See DefaultNATSPort.
	Port int

	// MaxStoreBytes is what all streams together may hold. Default: three quarters of the disk space that is free or
	// already used by the store, so that the rest is left to ClickHouse and to everybody else.
	MaxStoreBytes int64

	// NoSync acknowledges before the bytes are on disk: a power cut then loses accepted events. For tests, and for a restore, which
	// begins again.
	NoSync bool

	// MinFreeBytes is the free space JetStream is brought back at after a full disk. Default 128 MiB: below it the
	// next blocks of the store would fill the disk at once.
	MinFreeBytes int64

	// StartTimeout bounds one start, recovery of the streams included. Default 2 min.
	StartTimeout time.Duration

	// CheckInterval is how often Run looks whether JetStream is still on. Default 1 s.
	CheckInterval time.Duration

	// HungAfter is how long a health check may go unanswered before the server counts as
	// hung, and how long a server may take to stop. Default 30 s: far above the longest
	// sync of a busy disk, which holds the same locks.
	HungAfter time.Duration

	// PublicName is the host by which other machines connect. Default: the first that the certificate of TLS names.
	PublicName string

	// Passwords are those of the users (access.NATSUsers) that the server has. Who connects without
	// credentials is access.UserLocal, if that is one of them and the server is on loopback: beyond it everyone
	// needs a password. None at all: everybody may do everything.
	Passwords map[string]string

	// Log hears the server's own messages. Default: silence.
	Log LogFunc
}

// What the server allows; each line says what it bounds and against whom.
const (
	// natsMaxPayload: a frame is at most 512 KiB (see package schemas), headers a few hundred bytes.
	natsMaxPayload = 1 << 20
	// natsMaxPending: bytes the server keeps for a client that reads slowly, then it cuts the connection. A sink has asked
	// for 128 MiB at once at most (16 shards, 8 MiB each), a router for as much as its lanes; on a busy machine all of it
	// may wait for the client's turn.
	natsMaxPending = 256 << 20
	// natsMaxConns: far above the few dozens of one machine, far below the file descriptor limit.
	natsMaxConns = 4096
	// natsSenderConns are those of clients without credentials together, and of producers: neither they nor both can take all of
	// natsMaxConns, of which parts and commands need some.
	natsSenderConns = 1536
	// natsBufferedMsgs and natsBufferedBytes: what a stream takes in before it has written; beyond it publishers are
	// told 429 and wait. 128 MiB hold 256 of the largest frames.
	natsBufferedMsgs  = 100_000
	natsBufferedBytes = 128 << 20
	// natsMaxConsumers per stream: one per lane, shard and tail; the server's own default of 1,000 is too near.
	natsMaxConsumers = 20_000
	// natsMaxDuplicates is the longest dedup window a stream may ask for; Almanac asks for 10 min, at 186 B per id.
	natsMaxDuplicates = time.Hour
	// natsBatchesPerStream: open atomic batches, one per lane at a time. The server's default of 50 would make the
	// lanes of thirteen topics refuse each other.
	natsBatchesPerStream = 1000
	natsBatchesTotal     = 2000
	// natsHandshake bounds a TLS handshake, in seconds: one of a slow client on a busy machine, and no longer, for it has a
	// connection of natsMaxConns.
	natsHandshake = 5
)

// natsMinFree is the default of MinFreeBytes.
const natsMinFree = 128 << 20

func (c NATSConfig) withDefaults() NATSConfig {
	if c.Host == "" {
		c.Host = "127.0.0.1"
	}
	if c.MinFreeBytes == 0 {
		c.MinFreeBytes = natsMinFree
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = 2 * time.Minute
	}
	if c.HungAfter == 0 {
		c.HungAfter = 30 * time.Second
	}
	if c.CheckInterval == 0 {
		c.CheckInterval = time.Second
	}
	return c
}

func (c NATSConfig) validate() error {
	if c.Dir == "" {
		return fmt.Errorf("embedded NATS: no directory given for its streams")
	}
	if c.Port > 65535 {
		return fmt.Errorf("embedded NATS: port %d is above 65535", c.Port)
	}
	if c.MaxStoreBytes < 0 {
		return fmt.Errorf("embedded NATS: a store of %d bytes is less than nothing", c.MaxStoreBytes)
	}
	if c.TLS != nil && c.PublicName == "" {
		if _, err := certifiedName(c.TLS); err != nil {
			return err
		}
	}
	switch {
	case isLoopback(c.Host):
		return nil
	case c.TLS == nil:
		return requireLoopback("NATS", c.Host)
	case len(c.users()) == 0:
		return fmt.Errorf("%w: the embedded NATS was told to listen on %q without users: every program that reaches it could delete everything", ErrNotLoopback, c.Host)
	}
	return nil
}

// users are the passwords of those who may connect: beyond loopback not access.UserLocal, which needs none.
func (c NATSConfig) users() map[string]string {
	if isLoopback(c.Host) {
		return c.Passwords
	}
	out := maps.Clone(c.Passwords)
	delete(out, access.UserLocal)
	return out
}

// options are the server's own, for a port that is already decided. local is the TLS for this machine, where there is any.
func (c NATSConfig) options(port int, local *tls.Config) (*server.Options, error) {
	passwords := c.users()
	var anonymous string // who has no credentials
	if _, ok := passwords[access.UserLocal]; ok {
		anonymous = access.UserLocal
	}
	accounts, users, err := natsAccounts(passwords)
	if err != nil {
		return nil, err
	}
	opts := &server.Options{
		Accounts:              accounts,
		Users:                 users,
		NoAuthUser:            anonymous,
		ServerName:            "almanac",
		Host:                  c.Host,
		Port:                  port,
		NoSigs:                true, // the signals belong to our process
		MaxConn:               natsMaxConns,
		MaxPayload:            natsMaxPayload,
		MaxPending:            natsMaxPending,
		JetStream:             true,
		StoreDir:              c.Dir,
		SyncAlways:            !c.NoSync,
		JetStreamMaxStore:     c.MaxStoreBytes,
		JetStreamMaxMemory:    64 << 20, // Almanac keeps nothing in memory streams; clients may keep a little
		StreamMaxBufferedMsgs: natsBufferedMsgs,
		StreamMaxBufferedSize: natsBufferedBytes,
		JetStreamLimits: server.JSLimitOpts{
			Duplicates:                natsMaxDuplicates,
			DefaultMaxConsumers:       natsMaxConsumers,
			MaxBatchInflightPerStream: natsBatchesPerStream,
			MaxBatchInflightTotal:     natsBatchesTotal,
		},
	}
	if c.TLS != nil {
		opts.TLS, opts.TLSConfig, opts.TLSTimeout = true, byName(c.TLS, local), natsHandshake
	}
	return opts, nil
}
