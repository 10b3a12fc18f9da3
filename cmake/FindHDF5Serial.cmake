# The C interface of serial HDF5. CMake's own FindHDF5 asks the compiler wrapper h5cc, which knows only /usr and is
# wrong for a prefix; Debian names the library hdf5_serial, others hdf5.
# The archive is preferred: the shared library drags in 30 others (libcurl among them) that cost every process 6 MiB and
# 4 ms at its start. Where the archive needs more than zlib and szip, the shared library is taken.
find_path(HDF5Serial_INCLUDE_DIR hdf5.h PATH_SUFFIXES hdf5/serial)
find_library(HDF5Serial_SHARED NAMES hdf5_serial hdf5 PATH_SUFFIXES hdf5/serial)
find_library(HDF5Serial_STATIC NAMES libhdf5_serial.a libhdf5.a PATH_SUFFIXES hdf5/serial)
find_library(HDF5Serial_SZIP NAMES sz)
find_library(HDF5Serial_AEC NAMES libaec.a) # what an archive of szip is made of
find_library(HDF5Serial_ZLIB NAMES z)
mark_as_advanced(HDF5Serial_INCLUDE_DIR HDF5Serial_SHARED HDF5Serial_STATIC HDF5Serial_SZIP HDF5Serial_AEC HDF5Serial_ZLIB)

if(HDF5Serial_STATIC AND HDF5Serial_SZIP AND HDF5Serial_ZLIB)
  include(CheckCXXSourceCompiles)
  set(szip "${HDF5Serial_SZIP}")
  if(szip MATCHES "\\.a$" AND HDF5Serial_AEC)
    list(APPEND szip "${HDF5Serial_AEC}")
  endif()
  set(CMAKE_REQUIRED_INCLUDES "${HDF5Serial_INCLUDE_DIR}")
  set(CMAKE_REQUIRED_LIBRARIES "${HDF5Serial_STATIC}" ${szip} "${HDF5Serial_ZLIB}" ${CMAKE_DL_LIBS} m)
  if(CMAKE_BUILD_RPATH) # the libraries of szip may lie in a prefix
    list(JOIN CMAKE_BUILD_RPATH ":" rpath)
    set(CMAKE_REQUIRED_LINK_OPTIONS "-Wl,-rpath-link,${rpath}")
  endif()
  set(CMAKE_REQUIRED_QUIET ON)
  check_cxx_source_compiles(
    "#include <hdf5.h>
     int main() { return H5Fopen(\"x\", H5F_ACC_RDONLY, H5P_DEFAULT) < 0 && H5Dwrite(0, 0, 0, 0, 0, nullptr) < 0; }"
    HDF5Serial_STATIC_LINKS)
  if(HDF5Serial_STATIC_LINKS)
    set(HDF5Serial_LIBRARIES ${CMAKE_REQUIRED_LIBRARIES})
  endif()
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_REQUIRED_LIBRARIES)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  unset(CMAKE_REQUIRED_QUIET)
endif()
if(NOT HDF5Serial_LIBRARIES)
  set(HDF5Serial_LIBRARIES ${HDF5Serial_SHARED})
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HDF5Serial REQUIRED_VARS HDF5Serial_LIBRARIES HDF5Serial_INCLUDE_DIR)

if(HDF5Serial_FOUND AND NOT TARGET hdf5::hdf5)
  add_library(hdf5::hdf5 INTERFACE IMPORTED)
  target_include_directories(hdf5::hdf5 SYSTEM INTERFACE "${HDF5Serial_INCLUDE_DIR}")
  target_link_libraries(hdf5::hdf5 INTERFACE ${HDF5Serial_LIBRARIES})
endif()
