package schemas

import (
	"errors"
	"hash/fnv"
	"testing"

	"pgregory.net/rapid"
)

// The names on the wire, letter by letter: a change here is a change of the
// protocol.
func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		EventsSubject("app", 202611, 3):                    "events.app.2026-11.3",
		ShardSubject("app", 202611, 0x00ab):                "shards.app.2026-11.00000000000000ab",
		RoutedSubject("app", "3"):                          "routed.app.3",
		GivenSubject("app", "3"):                           "given.app.3",
		DeadSubject("app"):                                 "dead.app",
		TopicKey("app"):                                    "topics.app",
		HeadKey("app", 202611):                             "app.2026-11",
		ShardKey("app", 202611, 0xab):                      "app.2026-11.00000000000000ab",
		LeaseKey("router", "ff"):                           "leases.router.ff",
		MemberSubject("router", "ff"):                      "members.router.ff",
		PublicShardName("app", 202611, 0xfedcba9876543210): "app-registry:2026-11:shard:fedcba9876543210",
		PartitionID(202611, 0xab):                          "202611-171-0-0",
		MsgID("p", "app", 3, 9):                            "p.app.3.9",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestTopicNames(t *testing.T) {
	for _, s := range []string{"a", "auth", "a_1", "x0123456789"} {
		if err := ValidateTopicName(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	long := make([]byte, 64)
	for i := range long {
		long[i] = 'a'
	}
	for _, s := range []string{"", "A", "1a", "_a", "a-b", "a.b", "a b", "ä", "a;", "topics", "leases", "ledger", string(long), "a\n"} {
		if err := ValidateTopicName(s); !errors.Is(err, ErrTopicName) {
			t.Errorf("%q: %v, want it refused", s, err)
		}
	}
}

func TestSubjectsReadBack(t *testing.T) {
	topic := NewTopic("app")
	rapid.Check(t, func(rt *rapid.T) {
		m := Month(rapid.IntRange(1970, 2261).Draw(rt, "y")*100 + rapid.IntRange(1, 12).Draw(rt, "m"))
		lane := rapid.IntRange(0, topic.Lanes-1).Draw(rt, "lane")
		shard := Shard(rapid.Uint64().Draw(rt, "shard"))
		if gm, gl, err := ParseEventsSubject(EventsSubject("app", m, lane), &topic); err != nil || gm != m || gl != lane {
			rt.Fatalf("%s %d reads back as %s %d, %v", m, lane, gm, gl, err)
		}
		if got, err := ParseShardSubject(ShardSubject("app", m, shard)); err != nil || got != (ShardRef{"app", m, shard}) {
			rt.Fatalf("%s %s reads back as %s, %v", m, shard, got, err)
		}
	})
}

// TestFrontTopics holds that each topic a name had has subjects of its own in fronts, and that they read back.
func TestFrontTopics(t *testing.T) {
	seen := map[string]bool{}
	for _, first := range []int{0, 2, 17} {
		topic := NewTopic("app")
		topic.First = first
		name, got, err := ParseFrontTopic(topic.InFronts())
		if err != nil || name != "app" || got != first {
			t.Errorf("%q reads back as %q %d, %v", topic.InFronts(), name, got, err)
		}
		for _, subject := range []string{DocSubject(topic.InFronts(), 0, "id"), DocLockSubject(topic.InFronts(), 0, "id"), TimerSubject(topic.InFronts(), 0, "g", 1, "id")} {
			if seen[subject] {
				t.Errorf("%s is of two topics", subject)
			}
			seen[subject] = true
		}
		if key, err := ParseTimerSubject(TimerSubject(topic.InFronts(), 3, "g", 1, "id")); err != nil || key != (TimerKey{"app", first, 3, "g", 1, "id"}) {
			t.Errorf("a timer's subject reads back as %+v, %v", key, err)
		}
	}
	for _, token := range []string{"app~", "app~0", "app~-1", "app~02", "app~x", "app~1~2"} {
		if name, first, err := ParseFrontTopic(token); err == nil {
			t.Errorf("%q is read as %q %d", token, name, first)
		}
	}
}

// Lanes are FNV-1a 32 of the key, as hash/fnv and NATS's partition() have it.
func TestLanes(t *testing.T) {
	topic := NewTopic("app")
	topic.LaneBy = []string{ColUserID, "tenant"}
	rapid.Check(t, func(rt *rapid.T) {
		user, tenant, producer := rapid.String().Draw(rt, "user"), rapid.String().Draw(rt, "tenant"), rapid.StringN(1, 10, 20).Draw(rt, "producer")
		key := user + tenant
		if key == "" {
			key = producer
		}
		h := fnv.New32a()
		_, _ = h.Write([]byte(key))
		want := int(h.Sum32() % uint32(topic.Lanes))
		e := Event{UserID: user, Attrs: []Attr{String("tenant", tenant)}}
		if got := LaneOf(&topic, &e, 1, producer); got != want {
			rt.Fatalf("lane %d, want %d", got, want)
		}
	})
}
