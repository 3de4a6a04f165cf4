package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// ledger names the erasures that ended and that ClickHouse, or the streams, do not have: a copy
// from before them was restored. Nothing is proven of such a topic.
func (v *Verifier) ledger(ctx context.Context, only string, rep *Report) error {
	all, err := v.reg.Ledgers(ctx)
	if err != nil {
		return err
	}
	behind, err := v.reg.Behind(ctx, all)
	if err != nil {
		return err
	}
	kept, known, err := v.db.KeptLedger(ctx)
	if err != nil {
		return err
	}
	for topic, l := range all {
		if only != "" && topic != only {
			continue
		}
		rep.Problems = append(rep.Problems, unapplied(topic, l, behind[topic], kept, known)...)
	}
	slices.Sort(rep.Problems)
	return nil
}

// unapplied says what is to be done about the erasures of a topic that ClickHouse does not have.
func unapplied(topic string, l ledger.Erasures, behind []string, kept map[string]schemas.LedgerCopy, known bool) (problems []string) {
	if len(behind) > 0 {
		problems = append(problems, fmt.Sprintf("topic %s: a copy from before %s was restored; a sink carries that out again by itself, and `almanac erase resume %s` does it at once. Until then no reader shows the topic",
			topic, strings.Join(behind, ", "), behind[0]))
	}
	for i := range l {
		if e := &l[i]; known && e.State == ledger.Erased && e.Redacted && !kept[e.Key()].Applied {
			problems = append(problems, fmt.Sprintf("topic %s: a copy from before erasure %s was restored, which was redacted, so it cannot be carried out again; where no shard has rows too many, `almanac erase forget %s --yes` ends it, else restore a newer copy",
				topic, e.ID, e.ID))
		}
	}
	return problems
}
