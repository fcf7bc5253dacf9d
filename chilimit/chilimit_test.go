package chilimit_test

import (
	"testing"

	"github.com/go-chi/chi/v5/middleware"

	"github.com/accesslimit/accesslimit/core/adaptertest"
)

var (
	plain = adaptertest.Adapter{Serve: serving(nil, 0)}
	// others change what is routed, or where the routes are.
	others = map[string]adaptertest.Adapter{
		"changed paths": {Serve: serving(middlewares{middleware.StripSlashes, middleware.GetHead}, 0)},
		"cleaned paths": {Serve: serving(middlewares{middleware.CleanPath, middleware.GetHead}, 0)},
		"mounted":       {Serve: serving(nil, 2)},
		"changed paths of mounted routers": {
			Serve: serving(middlewares{middleware.CleanPath, middleware.StripSlashes, middleware.GetHead}, 2),
		},
	}
)

func TestAdapter(t *testing.T) { adaptertest.Run(t, plain) }

func TestPathsOfOtherRouters(t *testing.T) {
	for name, adapter := range others {
		t.Run(name, func(t *testing.T) { adaptertest.RunPaths(t, adapter) })
	}
}

func FuzzPaths(f *testing.F) {
	configurations := []adaptertest.Adapter{plain}
	for _, adapter := range others {
		configurations = append(configurations, adapter)
	}
	adaptertest.FuzzPaths(f, configurations...)
}
