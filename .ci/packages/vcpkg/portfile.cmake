# SPDX-License-Identifier: MIT
# A port for an overlay: set TNK_SOURCE to the folder of the unpacked release.
if(NOT DEFINED ENV{TNK_SOURCE})
  message(FATAL_ERROR "TNK_SOURCE is not set to the folder of the source")
endif()
set(SOURCE_PATH "$ENV{TNK_SOURCE}")

vcpkg_add_to_path("${CURRENT_HOST_INSTALLED_DIR}/tools/protobuf-c")
foreach(feature http2 tokenizers trackio valkey)
  set(${feature} disabled)
  if(${feature} IN_LIST FEATURES)
    set(${feature} enabled)
  endif()
endforeach()

vcpkg_configure_meson(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -Dcli=false
    -Dexamples=false
    -Dhttp2=${http2}
    -Dtokenizers=${tokenizers}
    -Dtrackio=${trackio}
    -Dvalkey=${valkey}
    -Dlua=disabled
    -Dnode=disabled
    -Dpython=disabled
)
vcpkg_install_meson()
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
