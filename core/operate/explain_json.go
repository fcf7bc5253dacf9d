package operate

import (
	"encoding/json"
	"strconv"
	"time"
)

// seconds is a duration that is a number of seconds as JSON.
type seconds time.Duration

// MarshalJSON implements json.Marshaler.
func (s seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}

// MarshalJSON implements json.Marshaler. It adds retry_after in seconds.
func (x Explanation) MarshalJSON() ([]byte, error) {
	type plain Explanation
	return json.Marshal(struct {
		plain
		RetryAfter seconds `json:"retry_after,omitzero"`
	}{plain(x), seconds(x.RetryAfter)})
}

// MarshalJSON implements json.Marshaler. It adds retry_after in seconds.
func (r ExplainedRule) MarshalJSON() ([]byte, error) {
	type plain ExplainedRule
	return json.Marshal(struct {
		plain
		RetryAfter seconds `json:"retry_after,omitzero"`
	}{plain(r), seconds(r.RetryAfter)})
}

// MarshalJSON implements json.Marshaler. It adds retry_after and reset_after in seconds.
func (l ExplainedLimit) MarshalJSON() ([]byte, error) {
	type plain ExplainedLimit
	return json.Marshal(struct {
		plain
		RetryAfter seconds `json:"retry_after,omitzero"`
		ResetAfter seconds `json:"reset_after,omitzero"`
	}{plain(l), seconds(l.RetryAfter), seconds(l.ResetAfter)})
}
