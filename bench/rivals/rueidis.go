package rivals

import (
	"context"

	"github.com/redis/rueidis"
)

// rueidisScript is the same script through github.com/redis/rueidis, which pipelines automatically;
// go-redis does not.
var rueidisScript = Redis{Name: Rueidis, Open: func(p Place, l Limit) (Opened, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{p.Addr}, SelectDB: p.DB, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		return Opened{}, err
	}
	script, args := rueidis.NewLuaScript(goodScript), goodArgs(l)
	allow := func(ctx context.Context, subject string) (allowed bool, err error) {
		left, err := script.Exec(ctx, client, []string{subject}, args).AsInt64()
		return err == nil && left >= 0, err
	}
	return Opened{Allow: allow, Close: client.Close}, nil
}}
