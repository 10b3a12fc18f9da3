# The libraries a program that links Millpond needs too. Read by Millpond's own build and by its installed package.
# In our own build a missing one ends it; find_package(millpond) collects them in mp_missing and says that Millpond is not found.
macro(mp_need package debian)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    if(CMAKE_FIND_PACKAGE_NAME STREQUAL "millpond")
      list(APPEND mp_missing "${package} (Debian: ${debian})")
    else()
      message(FATAL_ERROR "Millpond needs ${package}, which is not here: run 'make setup', or install the package ${debian}.")
    endif()
  endif()
endmacro()

set(THREADS_PREFER_PTHREAD_FLAG ON)
mp_need(Threads libc6-dev)
mp_need(fmt libfmt-dev)                      # fmt::fmt
mp_need(nlohmann_json nlohmann-json3-dev)    # nlohmann_json::nlohmann_json
mp_need(SQLite3 libsqlite3-dev)              # SQLite::SQLite3
mp_need(HDF5Serial libhdf5-dev)              # hdf5::hdf5
find_package(LIBXSMM QUIET)                  # LIBXSMM::LIBXSMM; not in every system: our own products take its place (backend/cpu/gemm.h)
mp_need(ZLIB zlib1g-dev)                     # ZLIB::ZLIB
mp_need(JPEG libjpeg-dev)                    # JPEG::JPEG
mp_need(PNG libpng-dev)                      # PNG::PNG
