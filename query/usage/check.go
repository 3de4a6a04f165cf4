package usage

import (
	"context"
	"fmt"
)

// Check reads the bills of a request twice, from marks and sums and from the rows grouped by
// cause, and calls differ with each bill that is not the same. It returns how many were
// compared. The second way takes memory for every cause. Of days whose rows retention dropped
// both have the sums.
func (r *Reader) Check(ctx context.Context, req Request, differ func(marks, cause *Bill)) (int, error) {
	req.ByCause = false
	marks, err := r.Report(ctx, req)
	if err != nil {
		return 0, err
	}
	req.ByCause = true
	cause, err := r.Report(ctx, req)
	if err != nil {
		return 0, err
	}
	compared, failed := 0, 0
	all := map[string][2]*Bill{}
	for i := range marks.Bills {
		all[marks.Bills[i].name()] = [2]*Bill{&marks.Bills[i], nil}
	}
	for i := range cause.Bills {
		b := &cause.Bills[i]
		all[b.name()] = [2]*Bill{all[b.name()][0], b}
	}
	for _, pair := range all {
		compared++
		if pair[0] == nil || pair[1] == nil || !pair[0].same(pair[1]) {
			failed++
			differ(pair[0], pair[1])
		}
	}
	if failed > 0 {
		return compared, fmt.Errorf("%w: %d of %d bills", ErrDiffers, failed, compared)
	}
	return compared, nil
}

// name tells the bills of a report apart.
func (b *Bill) name() string {
	return fmt.Sprintf("%q %q %q %q %d", b.Meter, b.Provider, b.Space, b.Customer, b.From.UnixMilli())
}

// same compares what is billed. Repeats are left out: a copy that names another customer is
// one of another's by its row, and by its cause one of the diff that counts.
func (b *Bill) same(other *Bill) bool {
	return b.SizeStart == other.SizeStart && b.SizeEnd == other.SizeEnd && b.Usage == other.Usage && b.Causes == other.Causes
}
