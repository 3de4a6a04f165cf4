package embedded

import (
	"fmt"
	"time"
)

// NATSBounds are those of NATSServerConfig that a server tells of.
type NATSBounds struct {
	PayloadBytes     int
	PendingBytes     int64
	BatchesPerStream int
	Consumers        int
	DuplicatesWindow time.Duration
}

// NATSNeeds are the bounds that the NATS of up has.
func NATSNeeds() NATSBounds {
	return NATSBounds{natsMaxPayload, natsMaxPending, natsBatchesPerStream, natsMaxConsumers, natsMaxDuplicates}
}

// NATSServerConfig is what a NATS server elsewhere needs in its configuration to do as the one of up does, with its streams in a
// directory: the bounds of nats_config.go, and a disk that has what is acknowledged. Listeners, TLS, routes and users
// (access.NATSConfig) are its operator's.
func NATSServerConfig(store string) string {
	return fmt.Sprintf(`# What Almanac needs of a NATS server, as %[1]s writes it.
max_payload: %[2]d
# A sink asks for 128 MiB at once: what waits for a client that reads slowly.
max_pending: %[3]d
max_connections: %[4]d
jetstream {
  # Its streams may be made before they are full: max_file_store is three quarters of the disk's free bytes unless you give it.
  store_dir: %[5]q
  # What is acknowledged is on disk. Almanac publishes frames, so it can afford it.
  sync_interval: always
  max_buffered_msgs: %[6]d
  max_buffered_size: %[7]d
  limits {
    duplicate_window: %[8]q
    default_max_consumers: %[9]d
    # A lane of each topic has one open: NATS's own 50 are the lanes of thirteen topics.
    batch: {max_inflight_per_stream: %[10]d, max_inflight_total: %[11]d}
  }
}
`, "`almanac config nats --server`", natsMaxPayload, natsMaxPending, natsMaxConns, store, natsBufferedMsgs, natsBufferedBytes,
		natsMaxDuplicates.String(), natsMaxConsumers, natsBatchesPerStream, natsBatchesTotal)
}
