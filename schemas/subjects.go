package schemas

import (
	"fmt"
	"hash/fnv"

	"slices"
	"strconv"
	"strings"
)

// OwnSubject says whether a subject is among those that Almanac gives a meaning.
func OwnSubject(subject string) bool {
	first, _, _ := strings.Cut(subject, ".")
	return slices.Contains([]string{tokenEvents, tokenShards, tokenRouted, tokenDead, tokenDocs, tokenLocks, tokenTimers}, first)
}

// MatchesSubject reports whether a filter of NATS matches a subject.
func MatchesSubject(filter, subject string) bool {
	f, s := strings.Split(filter, "."), strings.Split(subject, ".")
	for i, token := range f {
		if token == ">" {
			return len(s) > i
		}
		if i >= len(s) || token != "*" && token != s[i] {
			return false
		}
	}
	return len(f) == len(s)
}

// CoversSubjects reports whether a filter of NATS matches every subject that another one matches.
func CoversSubjects(filter, other string) bool {
	for {
		f, filterRest, filterMore := strings.Cut(filter, ".")
		o, otherRest, otherMore := strings.Cut(other, ".")
		switch {
		case f == ">":
			return true
		case o == ">" || f != "*" && f != o:
			return false
		case !filterMore || !otherMore:
			return filterMore == otherMore
		}
		filter, other = filterRest, otherRest
	}
}

// SubjectsMeet reports whether some subject is matched by both filters.
func SubjectsMeet(a, b string) bool {
	for {
		x, aRest, aMore := strings.Cut(a, ".")
		y, bRest, bMore := strings.Cut(b, ".")
		switch {
		case x == ">" || y == ">":
			return true
		case x != "*" && y != "*" && x != y:
			return false
		case !aMore || !bMore:
			return aMore == bMore
		}
		a, b = aRest, bRest
	}
}

// EventsSubject is events.<topic>.<YYYY-MM>.<lane>.
func EventsSubject(topic string, m Month, lane int) string {
	return tokenEvents + "." + topic + "." + m.String() + "." + strconv.Itoa(lane)
}

// LaneFilter selects every month of one lane. Topic and lane are tokens as they
// stand in subjects: garbage that reached the stream has lanes too.
func LaneFilter(topic, lane string) string { return tokenEvents + "." + topic + ".*." + lane }

// EventsPrefix begins every subject of a topic in EVENTS.
func EventsPrefix(topic string) string { return tokenEvents + "." + topic + "." }

// TopicFilter selects every lane and month of a topic in EVENTS.
func TopicFilter(topic string) string { return tokenEvents + "." + topic + ".*.*" }

// splitSubject splits a subject into n tokens, of which the first is given; form names the
// others. With an error all tokens are empty.
func splitSubject(subject, first string, n int, form string) ([]string, error) {
	t := strings.Split(subject, ".")
	if len(t) != n || t[0] != first {
		return make([]string, n), fmt.Errorf("%w: %q is not %s.%s", ErrSubject, subject, first, form)
	}
	return t, nil
}

// EventsTokens splits a subject of EVENTS into its three tokens, unchecked.
func EventsTokens(subject string) (topic, month, lane string, err error) {
	t, err := splitSubject(subject, tokenEvents, 4, "<topic>.<YYYY-MM>.<lane>")
	return t[1], t[2], t[3], err
}

// MonthOfSubject is the month a frame's subject names, in either stream.
func MonthOfSubject(subject string) (Month, error) {
	t := strings.Split(subject, ".")
	if len(t) != 4 {
		return 0, fmt.Errorf("%w: %q", ErrSubject, subject)
	}
	return ParseMonth(t[2])
}

// ParseEventsSubject checks a subject of EVENTS against the topic it names.
func ParseEventsSubject(subject string, t *Topic) (Month, int, error) {
	topic, month, lane, err := EventsTokens(subject)
	if err != nil {
		return 0, 0, err
	}
	if topic != t.Name {
		return 0, 0, fmt.Errorf("%w: %q is not of topic %q", ErrSubject, subject, t.Name)
	}
	m, err := ParseMonth(month)
	if err != nil {
		return 0, 0, err
	}
	n, err := ParseLane(lane)
	if err != nil || n >= t.Lanes {
		return 0, 0, fmt.Errorf("%w: %q has lane %q, topic %q has lanes 0 to %d", ErrSubject, subject, lane, t.Name, t.Lanes-1)
	}
	return m, n, nil
}

// ParseLane reads a lane token: a number without leading zeros, below MaxLanes.
func ParseLane(token string) (int, error) {
	n, err := strconv.Atoi(token)
	if err != nil || n < 0 || n >= MaxLanes || strconv.Itoa(n) != token {
		return 0, fmt.Errorf("%w: %q is not a lane", ErrSubject, token)
	}
	return n, nil
}

// UnroutableKey is the lane token under which a checkpoint of NoTopic speaks of one
// subject.
func UnroutableKey(subject string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(subject))
	return fmt.Sprintf("%016x", h.Sum64())
}

// ShardSubject is shards.<topic>.<YYYY-MM>.<shard>.
func ShardSubject(topic string, m Month, s Shard) string {
	return tokenShards + "." + topic + "." + m.String() + "." + s.String()
}

// ShardsFilter selects every shard of a topic in SHARDS.
func ShardsFilter(topic string) string { return tokenShards + "." + topic + ".*.*" }

// ParseShardSubject splits shards.<topic>.<YYYY-MM>.<shard>.
func ParseShardSubject(subject string) (r ShardRef, err error) {
	t := strings.Split(subject, ".")
	if len(t) != 4 || t[0] != tokenShards {
		return r, fmt.Errorf("%w: %q is not %s.<topic>.<YYYY-MM>.<shard>", ErrSubject, subject, tokenShards)
	}
	if r.Month, err = ParseMonth(t[2]); err != nil {
		return ShardRef{}, err
	}
	if r.ID, err = ParseShard(t[3]); err != nil {
		return ShardRef{}, err
	}
	r.Topic = t[1]
	return r, nil
}

// RoutedSubject is where a lane's checkpoint lives.
func RoutedSubject(topic, lane string) string { return tokenRouted + "." + topic + "." + lane }

// RoutedFilter selects the checkpoints of a topic.
func RoutedFilter(topic string) string { return tokenRouted + "." + topic + ".*" }

// RoutedTokens splits routed.<topic>.<lane>.
func RoutedTokens(subject string) (topic, lane string, ok bool) {
	t := strings.Split(subject, ".")
	if len(t) != 3 || t[0] != tokenRouted {
		return "", "", false
	}
	return t[1], t[2], true
}

// GivenSubject is where a lane keeps the parts of keyed requests that it was given.
func GivenSubject(topic, lane string) string { return tokenGiven + "." + topic + "." + lane }

// GivenFilter selects what the lanes of a topic were given.
func GivenFilter(topic string) string { return tokenGiven + "." + topic + ".*" }

// GivenTopic is the topic of such a subject.
func GivenTopic(subject string) (topic string, ok bool) {
	t := strings.Split(subject, ".")
	if len(t) != 3 || t[0] != tokenGiven {
		return "", false
	}
	return t[1], true
}

// DeadSubject is where a topic's dead letters live.
func DeadSubject(topic string) string { return tokenDead + "." + topic }

// DeadTopic is the topic of dead.<topic>.
func DeadTopic(subject string) (topic string, ok bool) {
	topic, ok = strings.CutPrefix(subject, tokenDead+".")
	return topic, ok && !strings.Contains(topic, ".")
}

// WaitingSubject is where a reader says that it waits until SQL has what the topic was
// given; SubjectsWaiting are those of all topics.
func WaitingSubject(topic string) string { return tokenWaiting + "." + topic }

// WaitingTopic is the topic of such a subject.
func WaitingTopic(subject string) string { return strings.TrimPrefix(subject, tokenWaiting+".") }

// MemberSubject returns where a live member of a role answers a probe. It is a plain
// subject: no stream keeps what is said on it.
func MemberSubject(role, member string) string { return tokenMembers + "." + role + "." + member }

// KVSubject is the subject of a registry key inside the bucket's stream, for
// commits that span several keys.
func KVSubject(key string) string { return "$KV." + Bucket + "." + key }

// CopySubject is the subject of a registry key's copy.
func CopySubject(key string) string { return "$KV." + BucketCopies + "." + key }

// Subject returns the shard's subject in SHARDS.
func (r ShardRef) Subject() string { return ShardSubject(r.Topic, r.Month, r.ID) }
