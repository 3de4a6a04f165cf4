package sql

import (
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// OlderSQL returns the value of a promoted field in a row whose frame did not know the field,
// over the row's other columns: the type's zero where none of them has a text of the type.
func OlderSQL(t *schemas.Topic, f *schemas.Field) string {
	found := ofTextSQL(f.Type, olderTextSQL(t, f.Name))
	if f.From != "" {
		found = fmt.Sprintf("coalesce(%s, %s)", found, ofTextSQL(f.Type, olderTextSQL(t, f.From)))
	}
	return fmt.Sprintf("CAST(ifNull(%s, %s), '%s')", found, f.DefaultSQL(), wireText(f.Type))
}

// MisfitSQL is whether a row keeps among its attributes, under a name of the field, a value
// that is not of the field's type.
func MisfitSQL(t *schemas.Topic, f *schemas.Field) string {
	misfit := func(key string) string {
		text := fmt.Sprintf("%s[%s]", QuoteName(schemas.ColAttributes), QuoteText(key))
		return fmt.Sprintf("(%s != '' AND isNull(%s))", text, ofTextSQL(f.Type, text))
	}
	if f.From == "" {
		return misfit(f.Name)
	}
	return misfit(f.Name) + " OR " + misfit(f.From)
}

func wireText(t schemas.FieldType) string { return strings.ReplaceAll(t.Wire(), "'", `\'`) }

// olderTextSQL returns the text under a name in a row that is older than the field of that name.
func olderTextSQL(t *schemas.Topic, name string) string {
	key := QuoteText(name)
	if t.Kind != kinds.Document {
		return fmt.Sprintf("%s[%s]", QuoteName(schemas.ColAttributes), key)
	}
	return fmt.Sprintf("multiIf(JSONType(%[1]s, %[2]s) = 'String', JSONExtractString(%[1]s, %[2]s), JSONType(%[1]s, %[2]s) IN ('Array', 'Object', 'Null'), '', JSONExtractRaw(%[1]s, %[2]s))",
		QuoteName(kinds.ColBody), key)
}

// columnSQL is the definition of a promoted field's column. Rows that are older than the field
// lack it in their parts: ClickHouse computes it when they are read, and stores it when parts
// are merged or a table is rebuilt.
func columnSQL(t *schemas.Topic, f *schemas.Field) string {
	column := t.Spec().Column(*f)
	if f.Since <= 1 {
		return column
	}
	return strings.Replace(column, " CODEC(", " DEFAULT "+OlderSQL(t, f)+" CODEC(", 1)
}

// ofTextSQL returns what OlderValue does, NULL where that is false. JSONExtractFloat rounds as
// Go does, toFloat64 does not.
func ofTextSQL(of schemas.FieldType, text string) string {
	matches := func(pattern string) string { return fmt.Sprintf("match(%s, %s)", text, QuoteText(pattern)) }
	switch of {
	case schemas.TypeInt64:
		number := fmt.Sprintf("JSONExtractFloat(%s)", text)
		return fmt.Sprintf("multiIf(%s, toInt64OrNull(%s), %s AND abs(%s) <= %d AND %[4]s = trunc(%[4]s), toInt64(%[4]s), NULL)",
			matches(schemas.WholeText), text, matches(schemas.RoundText), number, int64(kinds.MaxExact))
	case schemas.TypeFloat64:
		return fmt.Sprintf("if(%s AND isFinite(JSONExtractFloat(%s)), JSONExtractFloat(%[2]s), NULL)", matches(schemas.NumberText), text)
	case schemas.TypeBool:
		return fmt.Sprintf("multiIf(%[1]s IN ('1', 't', 'T', 'TRUE', 'true', 'True'), true, %[1]s IN ('0', 'f', 'F', 'FALSE', 'false', 'False'), false, NULL)", text)
	case schemas.TypeDecimal:
		return fmt.Sprintf("if(%s, toDecimal128OrNull(%s, %d), NULL)", matches(schemas.DecimalText), text, schemas.DecimalScale)
	case schemas.TypeTimestamp:
		return fmt.Sprintf("multiIf(%s, parseDateTime64BestEffortOrNull(%s, 9, 'UTC'), %s, %s, NULL)", matches(schemas.IsoText), text, matches(schemas.EpochText), epochSQL(text))
	case schemas.TypeJSON:
		return fmt.Sprintf("if(isValidJSON(%[1]s), %[1]s, NULL)", text)
	}
	return fmt.Sprintf("nullIf(%s, '')", text)
}

// epochSQL is ParseJSONTime for a number without an exponent, NULL where UnixNs has no such time.
func epochSQL(text string) string {
	whole := fmt.Sprintf("abs(toInt128OrZero(splitByChar('.', %s)[1]))", text)
	part := func(digits int) string {
		return fmt.Sprintf("toInt128OrZero(substring(concat(splitByChar('.', %s)[2], '000000000'), 1, %d))", text, digits)
	}
	ns := fmt.Sprintf("multiIf(%[1]s >= 100000000000000000, %[1]s, %[1]s >= 100000000000000, %[1]s * 1000 + %[2]s, %[1]s >= 100000000000, %[1]s * 1000000 + %[3]s, %[1]s * 1000000000 + %[4]s)",
		whole, part(3), part(6), part(9))
	signed := fmt.Sprintf("if(startsWith(%s, '-'), -(%s), %[2]s)", text, ns)
	return fmt.Sprintf("if(%[1]s >= %[2]d AND %[1]s < %[3]d, fromUnixTimestamp64Nano(toInt64(%[1]s), 'UTC'), NULL)", signed, int64(schemas.FirstNs), int64(schemas.PastNs))
}
