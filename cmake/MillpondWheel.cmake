# The part of the Python package that is not Python: cmake --install BUILD --component wheel --prefix SITE_PACKAGES. Program, probe and agent lie beside one another in
# the package (src/cli/self.h); what other programs look for in a prefix goes where pip puts data. Of no other installation.
if(NOT TARGET millpond_exe)
  return()
endif()
set(package millpond)
set(data data)
if(SKBUILD)
  set(data "${SKBUILD_DATA_DIR}")
endif()
set(wheel COMPONENT wheel EXCLUDE_FROM_ALL)
install(TARGETS millpond_exe RUNTIME DESTINATION ${package} ${wheel})
install(TARGETS mp_preload_count mp_preload_probe mp_preload_lines LIBRARY DESTINATION ${package} ${wheel})
# Beside the program also in an editable installation, whose Python lies elsewhere.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/millpond/inject" DESTINATION ${package} ${wheel} PATTERN __pycache__ EXCLUDE)
install(FILES "${PROJECT_BINARY_DIR}/share/man/man1/millpond.1" DESTINATION "${data}/share/man/man1" ${wheel})
install(FILES "${PROJECT_SOURCE_DIR}/completions/millpond.bash" DESTINATION "${data}/share/bash-completion/completions" RENAME millpond ${wheel})
install(FILES "${PROJECT_SOURCE_DIR}/completions/_millpond" DESTINATION "${data}/share/zsh/site-functions" ${wheel})
install(FILES "${PROJECT_SOURCE_DIR}/completions/millpond.fish" DESTINATION "${data}/share/fish/vendor_completions.d" ${wheel})

if(MILLPOND_STATIC)
  target_link_options(millpond_exe PRIVATE -static-libstdc++ -static-libgcc -Wl,-u,_dl_find_object) # takes in base/older_glibc.cc
  # Their licences go where their code goes, as Debian has them.
  string(REGEX MATCH "^[0-9]+" compiler "${CMAKE_CXX_COMPILER_VERSION}")
  foreach(name IN ITEMS libaec-dev libbz2-dev libcli11-dev libdw-dev libfmt-dev libhdf5-dev libjpeg62-turbo-dev liblzma-dev libpng-dev libsqlite3-dev libstdc++-${compiler}-dev
                        libxsmm-dev nlohmann-json3-dev zlib1g-dev)
    foreach(prefix IN ITEMS "${PROJECT_SOURCE_DIR}/.deps/usr" /usr)
      if(EXISTS "${prefix}/share/doc/${name}/copyright")
        file(REAL_PATH "${prefix}/share/doc/${name}/copyright" licence)
        install(FILES "${licence}" DESTINATION ${package}/licenses RENAME ${name} ${wheel})
        break()
      endif()
    endforeach()
  endforeach()
endif()
