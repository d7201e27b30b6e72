{
  "targets": [
    {
      "target_name": "tnk",
      "sources": [
        "src/bindings/node/addon/addon.c",
        "src/bindings/node/addon/gateway.c",
        "src/bindings/node/addon/ledger.c",
        "src/bindings/node/addon/object.c",
        "src/bindings/node/addon/promise.c",
        "src/bindings/node/addon/rest.c",
        "src/bindings/node/addon/sampling.c",
        "src/bindings/node/addon/service.c",
        "src/bindings/node/addon/text.c",
        "src/bindings/node/addon/training.c",
        "src/bindings/node/addon/value.c"
      ],
      "include_dirs": ["src"],
      "cflags": ["-std=c11", "<!@(pkg-config --cflags tnk tnk-chat tnk-gateway tnk-tokenizers)"],
      "defines": ["_POSIX_C_SOURCE=200809L", "NAPI_VERSION=8"],
      "libraries": ["<!@(pkg-config --libs-only-L --libs-only-l tnk tnk-chat tnk-gateway tnk-tokenizers | sed 's/-luv//')"]
    }
  ]
}
