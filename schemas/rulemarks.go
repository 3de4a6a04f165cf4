package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// ruleMarkBytes of a rule's digest: with MaxFields rules the marks have half a KiB.
const ruleMarkBytes = 4

// RuleMarks names the topic's privacy rules, as a dead letter to whose JSON they
// were applied says it.
func (t *Topic) RuleMarks() string {
	marks := make([]string, len(t.PII))
	for i, p := range t.PII {
		marks[i] = p.mark()
	}
	return strings.Join(marks, ",")
}

func (p Private) mark() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %g", p.Field, p.Rule, p.Grid))
	return hex.EncodeToString(sum[:ruleMarkBytes])
}

// RulesLeft returns the topic with those of its privacy rules that the marks do not
// name.
func (t *Topic) RulesLeft(marks string) *Topic {
	left, applied := *t, strings.Split(marks, ",")
	left.PII = slices.DeleteFunc(slices.Clone(t.PII), func(p Private) bool { return slices.Contains(applied, p.mark()) })
	return &left
}

// WithheldFrame is what is kept in place of a frame that cannot be opened, and whose producer did not know, or may not
// have known, all of its topic's privacy rules.
func WithheldFrame(n int) string {
	return fmt.Sprintf("(withheld: %d bytes of a frame that cannot be opened, on a topic with privacy rules that are newer)", n)
}

// Withheld is what is kept in place of a text that is not the JSON it should be, on
// a topic with privacy rules. It is not JSON either.
func Withheld(n int) string {
	return fmt.Sprintf("(withheld: %d bytes that are not a JSON object, on a topic with privacy rules)", n)
}
