package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrSeal: a seal, or a chain of them, does not hold together.
var ErrSeal = errors.New("bad seal")

// Seal is a digest over the rows of a closed shard, chained to the seal of the topic before it.
// It never changes: a shard whose rows change for a reason gets another one. The state sealed of
// a shard, no new frames above a position, has nothing to do with it.
type Seal struct {
	Topic  string      `json:"topic"`
	Number uint64      `json:"number"` // 1, 2, 3 … of the topic
	Shard  PublicShard `json:"shard"`
	Lane   int         `json:"lane"`
	// At is when it was made, by the clock of the process that made it.
	At time.Time `json:"at"`
	// Why is one of the words below, and Replaces the shard's seal before this one.
	Why      string `json:"why"`
	Replaces uint64 `json:"replaces,omitempty"`
	// Rows is how many there are, and Digest is over them: see RowsDigestSQL.
	Rows   uint64 `json:"rows"`
	Digest string `json:"digest"`
	// Version is the schema version whose columns the digest is over.
	Version int `json:"version"`
	// Erased is how many rows erasures took so far, and Erasures name those of them that
	// were not forgotten.
	Erased   uint64   `json:"erased,omitempty"`
	Erasures []string `json:"erasures,omitempty"`
	// Anonymised are fields that were cleared, and AnonymisedAt is when the last time.
	Anonymised   []string  `json:"anonymised,omitempty"`
	AnonymisedAt time.Time `json:"anonymised_at,omitzero"`
	// Unsealed is the digest that the rows had right before the erasure, where it was not that of
	// the seal this one replaces: they were changed in between, for no known reason.
	Unsealed string `json:"unsealed,omitempty"`
	// Prev is Hash of the topic's seal before this one; SealGenesis for the first.
	Prev string `json:"prev"`
	Hash string `json:"hash"`
}

// Why a seal was made.
const (
	SealClosed     = "closed" // the shard closed: its first
	SealErased     = "erased"
	SealAnonymised = "anonymised"
	SealDropped    = "dropped" // by retention: no row is left
)

// SealGenesis is Prev of a topic's first seal.
var SealGenesis = strings.Repeat("0", 2*sha256.Size)

// EmptyDigest is Digest of no rows.
var EmptyDigest = hex.EncodeToString(sha256.New().Sum(nil))

// PublicShard is a shard that JSON has by its public name.
type PublicShard ShardRef

// MarshalText gives the public name.
func (s PublicShard) MarshalText() ([]byte, error) { return []byte(ShardRef(s).String()), nil }

// UnmarshalText reads a public name.
func (s *PublicShard) UnmarshalText(text []byte) error {
	ref, err := ParsePublicShardName(string(text))
	*s = PublicShard(ref)
	return err
}

// Ref names the shard.
func (s *Seal) Ref() ShardRef { return ShardRef(s.Shard) }

// Sum is the hash over all of the seal but Hash, as lines of text.
func (s *Seal) Sum() string {
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	text := fmt.Sprintf("almanac seal 1\n%s\n%d\n%s\n%d\n%s\n%s\n%d\n%d\n%s\n%d\n%d\n%q\n%q\n%s\n%s\n",
		s.Topic, s.Number, s.Ref(), s.Lane, at(s.At), s.Why, s.Replaces, s.Rows, s.Digest, s.Version,
		s.Erased, s.Erasures, s.Anonymised, at(s.AnonymisedAt), s.Prev)
	if s.Unsealed != "" {
		text += s.Unsealed + "\n"
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Follows reports why the seal does not follow the one before it, nil for the topic's first.
func (s *Seal) Follows(prev *Seal) error {
	number, hash := uint64(1), SealGenesis
	if prev != nil {
		number, hash = prev.Number+1, prev.Hash
	}
	switch {
	case s.Sum() != s.Hash:
		return fmt.Errorf("%w: number %d of topic %s was changed: it has the hash %s and would have %s", ErrSeal, s.Number, s.Topic, s.Hash, s.Sum())
	case s.Number != number || prev != nil && s.Topic != prev.Topic:
		return fmt.Errorf("%w: number %d of topic %s stands where number %d must", ErrSeal, s.Number, s.Topic, number)
	case s.Prev != hash:
		return fmt.Errorf("%w: number %d of topic %s is chained to %s, and number %d has %s", ErrSeal, s.Number, s.Topic, s.Prev, number-1, hash)
	}
	return nil
}
