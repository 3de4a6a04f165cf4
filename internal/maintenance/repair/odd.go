package repair

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// removeOdd plans to remove the entries that are not readable and that nothing of the plan restores:
// those of topics, months and shards that never were. An entry of the ledger stays, for what was
// erased is known there alone, and so does what belongs to a topic that is not examined.
func (p *Plan) removeOdd(only string, topics []found) {
	restored := map[string]bool{}
	for i := range p.Actions {
		switch a := &p.Actions[i]; a.Do {
		case RestoreTopic, RestoreMonth:
			restored[a.Where] = true
		case RestoreShard:
			restored[schemas.ShardKey(a.entry.Topic, a.entry.Month, a.entry.ID)] = true
		}
	}
	for _, u := range p.odd {
		topic, isTopic := strings.CutPrefix(u.Key, schemas.TopicKey(""))
		if !isTopic {
			topic, _, _ = strings.Cut(u.Key, ".")
		}
		examined := slices.ContainsFunc(topics, func(t found) bool { return t.topic.Name == topic && !t.alone && (t.topic.Front() == "" || t.lost) })
		switch {
		case restored[u.Key], strings.HasPrefix(u.Key, schemas.LedgerPrefix), only != "" && topic != only:
		case isTopic && !slices.ContainsFunc(topics, func(t found) bool { return t.topic.Name == topic }), !isTopic && examined && entryOf(u.Key):
			p.add(Action{Do: RemoveEntry, Topic: topic, Where: u.Key, Source: "registry", odd: u,
				Detail: fmt.Sprintf("%d bytes that nothing can read, of what no stream and no table has a trace: %.200q", len(u.Value), u.Value)})
		}
	}
}

// entryOf reports whether a key is of a month or a shard.
func entryOf(key string) bool {
	t := strings.Split(key, ".")
	if len(t) < 2 {
		return false
	}
	_, err := schemas.ParseMonth(t[1])
	return err == nil
}
