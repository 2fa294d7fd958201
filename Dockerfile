# An image whose command is `auditor`, for a user without rights, in the folder /work:
#
#   docker build --tag privacy-auditor .
#   docker run --rm --network none --user "$(id -u):$(id -g)" --volume "$PWD:/work" privacy-auditor audit losses.csv --html report.html
FROM python:3.12-slim-bookworm AS build
COPY pyproject.toml README.md LICENSE /source/
COPY auditor /source/auditor
RUN python -m venv /opt/auditor && /opt/auditor/bin/pip install --no-cache-dir --no-compile /source

FROM python:3.12-slim-bookworm
COPY --from=build /opt/auditor /opt/auditor
RUN useradd --create-home --uid 10001 auditor
# Matplotlib keeps its list of fonts here, whoever runs the image.
ENV PATH=/opt/auditor/bin:$PATH MPLCONFIGDIR=/tmp/matplotlib
USER auditor
WORKDIR /work
ENTRYPOINT ["auditor"]
CMD ["--help"]
