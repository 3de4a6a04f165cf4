package schemas

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// This file holds the keys of the registry's bucket.

// First tokens of registry keys. Topics may not have these names, because a
// topic's own keys begin with its name.
const (
	keyTopics       = "topics"
	keyLeases       = "leases"
	keyLedger       = "ledger"
	keyJobs         = "jobs"
	keyLetters      = "letters"
	keyProofs       = "PROOFS" // no topic has a name in capitals
	keySeals        = "SEALS"
	keyDerivedDrops = "DERIVED"
	keyGroups       = "groups"
	keyEngine       = "ENGINE"
	keyCluster      = "CLUSTER"
	keyRemoved      = "REMOVALS"
	keyAlerts       = "ALERTS"
	keyRuling       = "RULING"
	keySaved        = "SEARCHES"
)

// TopicKey holds a topic's descriptor.
func TopicKey(topic string) string { return keyTopics + "." + topic }

// IsTopicKey reports whether a key is a descriptor's.
func IsTopicKey(key string) bool { return strings.HasPrefix(key, keyTopics+".") }

// TopicKeys selects every descriptor.
const TopicKeys = keyTopics + ".*"

// RemovalKey holds the removal of a topic: under way, or done.
func RemovalKey(topic string) string { return keyRemoved + "." + topic }

// IsRemovalKey reports whether a key is a removal's.
func IsRemovalKey(key string) bool { return strings.HasPrefix(key, keyRemoved+".") }

// RemovalKeys selects every removal.
const RemovalKeys = keyRemoved + ".*"

// KeysOf selects all keys of a topic but its descriptor, its removal and those of RememberedKeysOf.
func KeysOf(topic string) []string {
	return []string{
		topic + ".>", LettersKey(topic), DerivedDropsKey(topic), CopyKeys(topic), ReadUpToKey(topic), ProofKeys(topic), SealHeadKey(topic), SealKeys(topic),
	}
}

// RememberedKeysOf selects those of a topic's keys, but its descriptor, that ClickHouse has a copy of too.
func RememberedKeysOf(topic string) []string {
	return []string{LedgerKeys(topic), ErasureRecordKeys(topic), GroupKeys(topic)}
}

// HeadKey holds a topic-month's head entry.
func HeadKey(topic string, m Month) string { return topic + "." + m.String() }

// ShardKey holds a shard's entry.
func ShardKey(topic string, m Month, s Shard) string {
	return topic + "." + m.String() + "." + s.String()
}

// AllHeadKeys selects the head entries of every topic, and the descriptors, whose second
// token is not a month.
const AllHeadKeys = "*.*"

// HeadKeys selects a topic's head entries.
func HeadKeys(topic string) string { return topic + ".*" }

// ShardKeys selects a topic's shard entries.
func ShardKeys(topic string) string { return topic + ".*.*" }

// MonthShardKeys selects the shard entries of one month.
func MonthShardKeys(topic string, m Month) string { return topic + "." + m.String() + ".*" }

// LeaseKey is one live member of a role ("router", "sink").
func LeaseKey(role, member string) string { return keyLeases + "." + role + "." + member }

// LettersKey holds what became of a topic's dead letters by hand. Undeclared topics
// have dead letters too, so topic is a token as it stands in subjects.
func LettersKey(topic string) string { return keyLetters + "." + topic }

// JobKey is a long work that can be taken up again, of a verb ("replay").
func JobKey(verb, id string) string { return keyJobs + "." + verb + "." + id }

// JobKeys selects the jobs of a verb.
func JobKeys(verb string) string { return keyJobs + "." + verb + ".*" }

// AllJobs selects the jobs of every verb.
const AllJobs = keyJobs + ".*.*"

// AllLeases selects the members of every role.
const AllLeases = keyLeases + ".*.*"

// LeaseKeys selects the members of a role.
func LeaseKeys(role string) string { return keyLeases + "." + role + ".*" }

// LedgerPrefix begins every key of the ledger.
const LedgerPrefix = keyLedger + "."

// LedgerKey holds one erasure of a topic.
func LedgerKey(topic, erasure string) string { return keyLedger + "." + topic + "." + erasure }

// LedgerKeys selects the erasures of a topic.
func LedgerKeys(topic string) string { return keyLedger + "." + topic + ".*" }

// AllLedgerKeys selects the erasures of every topic.
const AllLedgerKeys = keyLedger + ".*.*"

// ErasureRecordKey holds what erasures took from a shard.
func ErasureRecordKey(topic string, m Month, s Shard) string {
	return keyLedger + "." + topic + "." + m.String() + "." + s.String()
}

// ErasureRecordKeys selects the erasure records of a topic.
func ErasureRecordKeys(topic string) string { return keyLedger + "." + topic + ".*.*" }

// Remembered selects the entries that ClickHouse has a copy of too: the ledger, descriptors and removals of
// topics and groups of timers.
var Remembered = []string{AllLedgerKeys, AllErasureRecordKeys, TopicKeys, RemovalKeys, AllGroups}

// LedgerOf reports whether a key of the ledger is of a topic.
func LedgerOf(key, topic string) bool { return strings.HasPrefix(key, LedgerPrefix+topic+".") }

// AllErasureRecordKeys selects the erasure records of every topic.
const AllErasureRecordKeys = keyLedger + ".*.*.*"

// EndKey holds the end of a stream as the janitor last saw it. No topic has a name in
// capitals.
func EndKey(stream string) string { return stream + "." + endToken }

const endToken = "end"

// ended are the streams whose ends are kept.
var ended = []string{StreamEvents, StreamShards, StreamDocs, StreamTimers}

// CopyKey holds what the registry keeps of a lane's checkpoint.
func CopyKey(topic, lane string) string { return StreamShards + "." + topic + "." + lane }

// CopyKeys selects the copies of a topic's checkpoints.
func CopyKeys(topic string) string { return StreamShards + "." + topic + ".*" }

// DerivedDropsKey holds which drops of what is derived from a topic's rows are under way.
func DerivedDropsKey(topic string) string { return keyDerivedDrops + "." + topic }

// ReadUpToKey holds how far verify read a topic's frames, ProofKey what it proved of a
// shard, and ProofKeys selects the proofs of a topic.
func ReadUpToKey(topic string) string { return keyProofs + "." + topic }

// ProofKey is described there.
func ProofKey(r ShardRef) string {
	return keyProofs + "." + r.Topic + "." + r.Month.String() + "." + r.ID.String()
}

// ProofKeys is described there.
func ProofKeys(topic string) string { return keyProofs + "." + topic + ".*.*" }

// SealHeadKey holds the end of a topic's chain of seals, SealKey one seal, and SealKeys
// selects all of a topic.
func SealHeadKey(topic string) string { return keySeals + "." + topic }

// SealKey is described there.
func SealKey(topic string, number uint64) string {
	return fmt.Sprintf("%s.%s.%010d", keySeals, topic, number)
}

// SealKeys is described there.
func SealKeys(topic string) string { return keySeals + "." + topic + ".*" }

// AlertKey holds the rules of a group of alerts, whose name may be any text, and AlertKeys selects all groups.
func AlertKey(group string) string {
	return keyAlerts + "." + base64.RawURLEncoding.EncodeToString([]byte(group))
}

// AlertKeys is described there.
const AlertKeys = keyAlerts + ".*"

// AlertTurnKey is written with each group of rules. So what is asked of all groups together holds for two that are
// applied at one moment.
const AlertTurnKey = keyRuling

// SearchKey holds a saved search, whose name may be any text, and SearchKeys selects all of them.
func SearchKey(name string) string {
	return keySaved + "." + base64.RawURLEncoding.EncodeToString([]byte(name))
}

// SearchKeys is described there.
const SearchKeys = keySaved + ".*"

// JobAlerts is the verb of the jobs that hold how far the rules of a topic are evaluated.
const JobAlerts = "alerts"

// Topics of Almanac's own, which the first rules of alerts make.
const (
	// TopicAlerts, of kind audit, has every transition of an alert.
	TopicAlerts = "alerts"
	// TopicAlertCalls, of kind timer, has the notifications.
	TopicAlertCalls = "alert_calls"
)

// EngineKey holds which engine has the cluster's rows. It is one token, so that no list of a
// topic's keys has it.
const EngineKey = keyEngine

// ClusterKey holds what tells this Almanac from another, once it had a backup.
const ClusterKey = keyCluster

// notCopied are the first tokens of keys that have no second copy: who is alive, work that can
// begin again, proofs that can be made again, turns, and copies of checkpoints and ends of streams,
// which change every second.
var notCopied = []string{keyLeases, keyJobs, keyProofs, keyRuling, StreamShards}

// Copied reports whether the entry of a key has a second copy.
func Copied(key string) bool {
	first, last, _ := strings.Cut(key, ".")
	return !slices.Contains(notCopied, first) && !(last == endToken && slices.Contains(ended, first))
}

// InLedger reports whether a key is one of the ledger: of an erasure, or of what erasures took
// from a shard. erasure says that it is the former.
func InLedger(key string) (erasure, in bool) {
	in = strings.HasPrefix(key, LedgerPrefix)
	return in && strings.Count(key, ".") == 2, in
}
