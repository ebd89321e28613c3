# arcfleet with the extras for planners; the learned methods need torch and are left out.
#   docker build -t arcfleet .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" arcfleet \
#       solve example:denver --time 10 --html map.html
# The web app, with its data in ./arcfleet-data; the first command prints the token, once:
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" arcfleet \
#       serve --token-file token --new-token
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" -p 127.0.0.1:8321:8321 arcfleet \
#       serve --host 0.0.0.0 --token-file token
FROM python:3.12-slim AS build
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN python -m venv /opt/arcfleet \
    && /opt/arcfleet/bin/pip install --no-cache-dir -c /source/constraints.txt \
        "/source[bounds,maps,plot,serve,sheets]" \
    && /opt/arcfleet/bin/pip uninstall -y pip

FROM python:3.12-slim
COPY --from=build /opt/arcfleet /opt/arcfleet
# No root; matplotlib keeps its cache where any user may write.
RUN install -d -o 10001 -g 10001 /data
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8321
ENV PATH="/opt/arcfleet/bin:$PATH" MPLCONFIGDIR=/tmp/matplotlib
ENTRYPOINT ["arcfleet"]
CMD ["--help"]
