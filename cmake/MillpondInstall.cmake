# cmake --install: the program, public headers, all static libraries and one shared library in one export set, find_package(millpond), and
# `pkg-config millpond` for those who do not use CMake. The target `installed` is all that it needs: no tests, no benchmarks.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/millpond)

get_property(libraries GLOBAL PROPERTY MILLPOND_LIBRARIES)
install(TARGETS millpond ${libraries} EXPORT millpond-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/millpond)

# libmillpond.so is made of the same objects. It shows names of our namespace only, so that what it links statically meets nothing of the program's.
set(objects)
set(outside)
foreach(library IN LISTS libraries)
  get_target_property(type ${library} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    list(APPEND objects "$<TARGET_OBJECTS:${library}>")
  endif()
  get_target_property(links ${library} INTERFACE_LINK_LIBRARIES)
  foreach(link IN LISTS links)
    if(link MATCHES "::")
      list(APPEND outside "${link}")
    endif()
  endforeach()
endforeach()
list(REMOVE_DUPLICATES outside)
list(TRANSFORM outside REPLACE "^hdf5::hdf5$" "${HDF5Serial_SHARED}") # Debian's archive cannot become a part of a shared library
set(names "${PROJECT_SOURCE_DIR}/cmake/millpond.map")
add_library(millpond_shared SHARED ${objects})
add_library(millpond::shared ALIAS millpond_shared)
set_target_properties(millpond_shared PROPERTIES EXPORT_NAME shared OUTPUT_NAME millpond VERSION ${PROJECT_VERSION} LINKER_LANGUAGE CXX
                                                 SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINK_DEPENDS "${names}")
target_compile_features(millpond_shared INTERFACE cxx_std_20)
target_include_directories(millpond_shared INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_link_libraries(millpond_shared PRIVATE ${outside} ${CMAKE_DL_LIBS})
target_link_options(millpond_shared PRIVATE "-Wl,--version-script=${names}")
install(TARGETS millpond_shared EXPORT millpond-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

add_custom_target(installed DEPENDS $<$<TARGET_EXISTS:program>:program> millpond_shared ${libraries})
file(RELATIVE_PATH to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/") # the prefix may be moved
configure_file("${PROJECT_SOURCE_DIR}/cmake/millpond.pc.in" "${PROJECT_BINARY_DIR}/millpond.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/millpond.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(EXPORT millpond-targets NAMESPACE millpond:: DESTINATION ${package_dir})
if(EXISTS "${PROJECT_SOURCE_DIR}/include/millpond")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/millpond" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILES_MATCHING PATTERN "*.h")
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/millpond-config.cmake.in" "${PROJECT_BINARY_DIR}/millpond-config.cmake"
                              INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/millpond-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/millpond-config.cmake" "${PROJECT_BINARY_DIR}/millpond-config-version.cmake"
              cmake/MillpondPackages.cmake cmake/FindLIBXSMM.cmake cmake/FindHDF5Serial.cmake
        DESTINATION ${package_dir})
