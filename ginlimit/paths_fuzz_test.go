package ginlimit_test

import (
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/accesslimit/accesslimit/core/adaptertest"
)

// FuzzPaths tries paths on gin's router as it is, and as its options make it route by other forms
// of the path.
func FuzzPaths(f *testing.F) {
	gin.SetMode(gin.TestMode)
	adaptertest.FuzzPaths(f,
		adaptertest.Adapter{Serve: serve(func(*gin.Engine) {})},
		adaptertest.Adapter{Serve: serve(func(e *gin.Engine) { e.UseRawPath = true })},
		adaptertest.Adapter{Serve: serve(func(e *gin.Engine) { e.UseRawPath, e.UnescapePathValues = true, false })},
		adaptertest.Adapter{Serve: serve(func(e *gin.Engine) { e.RemoveExtraSlash = true })},
		adaptertest.Adapter{Serve: serve(func(e *gin.Engine) { e.UseRawPath, e.RemoveExtraSlash = true, true })},
		adaptertest.Adapter{Serve: serve(func(e *gin.Engine) { e.RedirectFixedPath, e.HandleMethodNotAllowed = true, true })},
	)
}
